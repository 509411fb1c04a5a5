#!/usr/bin/env bash
# TRL: GKDTrainer divides the loss of generated texts by the number of tokens of the data set's answers, which are not read in that
# step. So distillation on the student's own texts (lmbda, half of all steps by default) weighs more the shorter the answers of the data
# are, and less where they are longer than what is generated; steps on the data itself are means per token.
#
# Versions: trl 1.16.0, transformers 5.24.0, accelerate 1.15.0, torch 2.15.0, datasets 5.2.0; as of 2026-12-01.
# Seen:     one prompt, one student and teacher, 16 generated tokens, the same each time. Loss of the generated texts for answers of 2, 8
#           and 32 words in the data: 3.130, 0.782, 0.196; norm of the gradient 2.093, 0.523, 0.131. On the data 0.32 to 0.36.
# Source:   trl/experimental/gkd/gkd_trainer.py: training_step() replaces input_ids and labels by generated ones, and passes on
#           num_items_in_batch, which Trainer counted in the old labels.
# Advice:   override training_step() to pass None on (0.391 each time then, a mean per generated token).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 transformers==5.24.0 accelerate==1.15.0 \
    datasets==5.2.0 trl==1.16.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import contextlib
import sys
from importlib.metadata import version

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl.experimental.gkd import GKDConfig, GKDTrainer

print("versions:", *(f"{name} {version(name)}" for name in ("trl", "transformers", "accelerate", "torch", "datasets")))
torch.set_num_threads(1)
words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(
    ["<pad>", "<end>", "<user>", "<assistant>", *(f"w{i}" for i in range(60))])}, unk_token="<pad>"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<end>", padding_side="left")
tokenizer.chat_template = ("{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }} {% endfor %}"
                           "{% if add_generation_prompt %}<assistant> {% endif %}")


def model(seed):
    torch.manual_seed(seed)
    return LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
                                        pad_token_id=0, eos_token_id=1, bos_token_id=None, initializer_range=0.3))


class MeanPerToken(GKDTrainer):
    def training_step(self, model, inputs, num_items_in_batch=None):
        return super().training_step(model, inputs, None)


def first_step(answer, share, trainer_class=GKDTrainer):
    """Loss and norm of the gradient of one step, with answers of so many words, and so large a share of generated texts."""
    data = Dataset.from_list([{"messages": [{"role": "user", "content": "w1 w2 w3"},
                                            {"role": "assistant", "content": " ".join(["w5"] * answer)}]}] * 4)
    settings = GKDConfig("out", lmbda=share, max_new_tokens=16, per_device_train_batch_size=4, max_steps=1, max_length=128, logging_steps=1,
                         report_to=[], use_cpu=True, bf16=False, gradient_checkpointing=False, save_strategy="no", max_grad_norm=0, seed=0)
    trainer = trainer_class(model=model(0), teacher_model=model(1), args=settings, train_dataset=data, processing_class=tokenizer)
    torch.manual_seed(0)
    with contextlib.redirect_stdout(sys.stderr):
        trainer.train()
    log = trainer.state.log_history[0]
    return log["loss"], log["grad_norm"]


seen = {share: {answer: first_step(answer, share) for answer in (2, 8, 32)} for share in (1.0, 0.0)}
means = [first_step(answer, 1.0, MeanPerToken)[0] for answer in (2, 8, 32)]
print("expected: the loss of generated texts, a mean per token, does not depend on the answers in the data, which are not read")
for share, steps in seen.items():
    print("seen:", "generated texts," if share else "the data itself,",
          ", ".join(f"answers of {answer}: loss {loss:.3f}, gradient {norm:.3f}" for answer, (loss, norm) in steps.items()))
print("with a count of None:", [round(loss, 3) for loss in means])
generated, own = seen[1.0], seen[0.0]
if not (abs(generated[2][0] / generated[32][0] - 16) < 0.1 and abs(generated[2][1] / generated[8][1] - 4) < 0.1
        and max(means) - min(means) < 1e-4 and max(loss for loss, _ in own.values()) < 1.5 * min(loss for loss, _ in own.values())):
    sys.exit("the behaviour has changed")
END
