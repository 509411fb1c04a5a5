"""An exported model for transformers, beside model.py, which computes it, as analysis/export.py
--format huggingface writes both.

    AutoModelForCausalLM.from_pretrained("FOLDER", trust_remote_code=True)
"""

from torch.nn import functional as F
from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from .model import Transformer


class AttnasConfig(PreTrainedConfig):
    """`attnas` is what model.py reads: semantics, model and layers."""

    model_type = "attnas"

    def __init__(self, attnas=None, **others):
        self.attnas = attnas or {}
        super().__init__(**others)


class AttnasForCausalLM(PreTrainedModel, GenerationMixin):
    """A language model of any mechanism. No state is kept from token to token: each is computed
    from all before it.
    """

    config_class = AttnasConfig
    main_input_name = "input_ids"
    _tied_weights_keys = {}  # where matrices are tied there is one

    def __init__(self, config):
        super().__init__(config)
        self.transformer = Transformer(config.attnas)
        # what is not saved, from_pretrained() leaves as memory has it
        for module in self.transformer.modules():
            module._non_persistent_buffers_set.clear()
        self.post_init()

    def _init_weights(self, module):
        """Nothing: Transformer begins as it should."""

    def get_input_embeddings(self):
        return self.transformer.embedding

    def get_output_embeddings(self):
        return self.transformer.head

    def forward(self, input_ids, attention_mask=None, labels=None, position_ids=None,
                num_items_in_batch=None, return_dict=True, **kwargs):
        """
        @param input_ids       (B, T).
        @param attention_mask  (B, T), 1 everywhere, or 0 behind a sequence: nothing is hidden,
            since nobody sees later tokens.
        @param labels          (B, T), -100 is not scored: the loss is the mean over label t + 1
            given the tokens up to t.
        @param position_ids    (B, T), not read, but that they begin once in a row: packed texts
            would see each other.
        @param num_items_in_batch  what the loss is divided by in place of this batch's targets:
            Trainer's number of targets of all
                                   batches whose gradients it adds up.
        """
        if attention_mask is not None:
            self.require_no_padding(attention_mask)
        if position_ids is not None and (position_ids[:, 1:] < position_ids[:, :-1]).any():
            raise ValueError("position_ids begin again within a row, must not: texts in one row "
                             "see those before them; give each text a row")
        logits = self.transformer(input_ids)
        loss = None
        if labels is not None:
            shares = num_items_in_batch is not None
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(),
                                   labels[:, 1:].flatten().to(logits.device),
                                   reduction="sum" if shares else "mean")
            if shares:
                loss = loss / num_items_in_batch
        return CausalLMOutput(
            loss=loss, logits=logits) if return_dict else (logits, ) if loss is None else (loss,
                                                                                           logits)

    def require_no_padding(self, mask):
        seen, options = mask.bool(), {
            option for layer in self.config.attnas["layers"] for option in layer.values()
        }
        whole = sorted(options & {"sequence_mean", "topk_quarter"})
        if whole and not seen.all():
            raise ValueError(f"attention_mask hides tokens, must be 1: {whole[0]} sees the whole "
                             f"sequence; give sequences of equal length")
        if (seen[:, 1:] & ~seen[:, :-1]).any():
            raise ValueError("attention_mask hides tokens before others, must be 1 but for "
                             "padding behind a sequence")

    def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **kwargs):
        """A model of learned positions sees the last L tokens, any other one all."""
        context = self.transformer.context if self.transformer.positions == "learned" else 0
        mask = None if attention_mask is None else attention_mask[:, -context:]
        return {"input_ids": input_ids[:, -context:], "attention_mask": mask}
