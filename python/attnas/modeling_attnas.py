"""An exported model for transformers, beside model.py, which computes it, as analysis/export.py
--format huggingface writes both.

    AutoModelForCausalLM.from_pretrained("FOLDER", trust_remote_code=True)
"""

from dataclasses import dataclass

import torch
from torch.nn import functional as F
from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import (BaseModelOutput, CausalLMOutput,
                                           SequenceClassifierOutput)

from .model import Transformer

# What forward() of other models takes, and this one would ignore.
UNREAD = ("past_key_values", "inputs_embeds", "output_attentions", "output_hidden_states")
WHOLE = ("sequence_mean", "topk_quarter")  # options that see the whole sequence


def whole_options(layers):
    """Those of WHOLE that layers have."""
    layers = [*layers, *(part for layer in layers for part in layer.get("parts", ()))]
    return sorted(option for option in WHOLE if any(option in layer.values() for layer in layers))


class Kept:
    """What layers keep of the tokens of B sequences so far: keys and values, states."""

    is_compileable = is_croppable = False

    def __init__(self):
        self.states = []

    def get_seq_length(self, *_):
        return self.states[-1]["tokens"] if self.states else 0

    def reorder_cache(self, beam_idx):
        """Sequences that go on, by their numbers."""
        def reordered(kept):
            if isinstance(kept, dict):
                return {name: reordered(each) for name, each in kept.items()}
            return kept[beam_idx] if isinstance(kept, torch.Tensor) else kept

        self.states = [reordered(state) for state in self.states]


@dataclass
class WithKept(CausalLMOutput):
    """Also what was given as `cache`."""

    cache: Kept | None = None


class AttnasConfig(PreTrainedConfig):
    """`attnas` is what model.py reads: semantics, model and layers."""

    model_type = "attnas"

    def __init__(self, attnas=None, **others):
        self.attnas = attnas or {}
        super().__init__(**others)


class AttnasModel(PreTrainedModel):
    """The normalised outputs of the last layer."""

    config_class = AttnasConfig
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    gradient_checkpointing = False
    _tied_weights_keys = {}  # where matrices are tied there is one

    def __init__(self, config):
        super().__init__(config)
        self.transformer = Transformer(config.attnas)
        self.post_init()

    def _init_weights(self, module):
        """Nothing: Transformer begins as it should."""

    def get_input_embeddings(self):
        return self.transformer.embedding

    def set_input_embeddings(self, embedding):
        self.transformer.embedding = embedding

    def resize_token_embeddings(self, *arguments, **named):
        """Of all tables of tokens."""
        resized = super().resize_token_embeddings(*arguments, **named)
        rows, values = resized.num_embeddings, self.transformer.value_embedding
        if values is not None:
            self.transformer.value_embedding = self._get_resized_embeddings(values, rows)
        self.config.attnas["model"]["vocabulary"] = rows
        return resized

    def new_cache(self):
        """An empty one, to be given as `cache`; None: an option depends on the whole sequence."""
        return None if whole_options(self.config.attnas["layers"]) else Kept()

    def features(self, input_ids, attention_mask=None, position_ids=None, cache=None, **others):
        """
        @param input_ids       (B, T); the vocabulary's size is padding.
        @param attention_mask  (B, T), 1 everywhere, or 0 behind a sequence: nothing is hidden,
            since nobody sees later tokens.
        @param position_ids    (B, T), not read, but that they begin once in a row: packed texts
            would see each other.
        @param cache         new_cache(), or one that earlier tokens have filled, to which input_ids
            are added.
        @return  (B, T, D), and which tokens are no padding, (B, T).
        """
        if not isinstance(cache, Kept):
            others["cache"] = cache
        for name in ("cache", *UNREAD):
            if others.get(name) is not None and others[name] is not False:
                raise ValueError(f"{name} is given, must be left out: each token is computed from "
                                 f"the ids of all before it, or new_cache(), and logits are all "
                                 f"that is returned")
        seen = input_ids != self.config.vocab_size
        if attention_mask is not None:
            seen = seen & attention_mask.bool()[:, -seen.shape[1]:]
        self.require_padding_behind(seen)
        if position_ids is not None and (position_ids[:, 1:] < position_ids[:, :-1]).any():
            raise ValueError("position_ids begin again within a row, must not: texts in one row "
                             "see those before them; give each text a row")
        call = self._gradient_checkpointing_func if (self.gradient_checkpointing
                                                     and self.training) else None
        return self.transformer.features(input_ids.masked_fill(~seen, 0), call, *(
            [cache.states] if isinstance(cache, Kept) else [])), seen

    def require_padding_behind(self, seen):
        whole = whole_options(self.config.attnas["layers"])
        if whole and not seen.all():
            raise ValueError(f"attention_mask hides tokens, must be 1: {whole[0]} sees the whole "
                             f"sequence; give sequences of equal length")
        if (seen[:, 1:] & ~seen[:, :-1]).any():
            raise ValueError("attention_mask hides tokens before others, must be 1 but for "
                             "padding behind a sequence")

    def forward(self, input_ids, attention_mask=None, return_dict=None, **others):
        features, _ = self.features(input_ids, attention_mask, **others)
        return self.output(BaseModelOutput(last_hidden_state=features), return_dict)

    @staticmethod
    def output(found, return_dict):
        """@param return_dict  None is as usual, which PEFT says."""
        return found.to_tuple() if return_dict is False else found

    @staticmethod
    def mean_loss(logits, labels, count):
        """Of the labels but -100. @param count  what the sum is divided by in place of their
        number: Trainer's number of targets of all batches whose gradients it adds up.
        """
        if labels is None:
            return None
        loss = F.cross_entropy(logits.float(), labels.to(logits.device),
                               reduction="mean" if count is None else "sum")
        return loss if count is None else loss / count


class AttnasForCausalLM(AttnasModel, GenerationMixin):
    """A language model of any mechanism."""

    def get_output_embeddings(self):
        return self.transformer.head

    def set_output_embeddings(self, head):
        self.transformer.head = head

    @classmethod
    def _supports_default_dynamic_cache(cls):
        """Not: prepare_inputs_for_generation() makes a cache."""
        return False

    def forward(self, input_ids, attention_mask=None, labels=None, num_items_in_batch=None,
                return_dict=None, **others):
        """@param labels  (B, T), -100 is not scored: the loss is the mean over label t + 1 given
        the tokens up to t. Others as of features().
        """
        features, _ = self.features(input_ids, attention_mask, **others)
        logits = self.transformer.logits(features)
        loss = None if labels is None else self.mean_loss(
            logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), num_items_in_batch)
        return self.output(WithKept(loss=loss, logits=logits, cache=others.get("cache")),
                           return_dict)

    def prepare_inputs_for_generation(self, input_ids, attention_mask=None, cache=None,
                                      use_cache=True, **kwargs):
        """A model of learned positions sees the last L tokens, any other one all, of which layers
        keep what they need."""
        if attention_mask is not None and not attention_mask.all():
            raise ValueError("attention_mask hides tokens, must be 1 to generate, since what "
                             "follows would stand behind padding: give prompts of equal length, "
                             "or one at a time")
        context = self.transformer.context if self.transformer.positions == "learned" else 0
        ended = input_ids == self.config.vocab_size  # rows that wait for others
        input_ids = input_ids.masked_fill(ended, 0)
        if context or not use_cache or (cache is None and self.new_cache() is None):
            return {"input_ids": input_ids[:, -context:]}
        cache = cache or self.new_cache()
        return {"input_ids": input_ids[:, cache.get_seq_length():], "cache": cache}


class AttnasForSequenceClassification(AttnasModel):
    """A classifier, whose classes are the first rows of the output matrix."""

    def forward(self, input_ids, attention_mask=None, labels=None, num_items_in_batch=None,
                return_dict=None, **others):
        """@param labels  (B), classes, of which each sequence's last position is asked. Others as
        of features().
        """
        features, seen = self.features(input_ids, attention_mask, **others)
        last = features[torch.arange(len(seen)), seen.sum(1) - 1]
        logits = self.transformer.logits(last)[:, :self.config.num_labels]
        loss = self.mean_loss(logits, labels, num_items_in_batch)
        return self.output(SequenceClassifierOutput(loss=loss, logits=logits), return_dict)
