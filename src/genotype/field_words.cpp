#include "genotype/field_words.hpp"

#include <algorithm>
#include <cctype>

#include "core/error.hpp"
#include "core/words.hpp"

namespace nas {

namespace {

/// words | what to write, or nothing | what that is, or what is nearest
constexpr std::string_view kTable = R"(
mha vanilla baseline transformer gpt gpt2 | mixer=attn | the default: as many heads of keys and values as of queries
gqa grouped_query | kv_heads=2 | that many heads of keys and values, each shared by neighbouring heads of queries
multi_query | mqa | one head of keys and values
mla latent multi_head_latent deepseek deepseek_v2 deepseek_v3 | kv_rank=64 | keys and values come from a latent of that width, which alone is kept
tpa mfa mlra gta | | nearest: kv_rank=64 (a latent), kv_heads=2
flash flash_attention fa2 fa3 fa4 sdpa xformers memory_efficient paged ring | | no mechanism, but ways to compute one: all numerical modes but reference never hold all scores, nothing is to be written
differential diff diff_attention diff_transformer differential_transformer | maps=difference | the difference of two maps of weights in each head
talking_heads multi_token mta dcmha | | nothing mixes scores of several heads; nearest: maps=difference
gated gated_attention | elementwise_gate | a gate on each entry of heads' outputs; headwise_gate: one for the head
sliding sliding_window local local_attention window_attention mistral | swa | pattern=window; window=N says how many newest keys are seen
longformer streaming streaming_llm attention_sink sink_tokens | pattern=window+globals=4 | a window, and the first tokens; normalization sink learns a number in their place
duo duo_attention | pattern=window+full_groups=1 | some heads see all keys, the others a window
sparse sparse_transformer dilated logsparse | strided | the newest keys, and of earlier ones one in a stride
reformer routing routing_transformer clustered | lsh | the newest earlier keys of a hash
nsa native_sparse moba dsa qsa indexer lightning_indexer seer infllm | pattern=indexed | blocks of keys, chosen by their mean keys; each token's own block and window beside them is not here
h2o snapkv quest minference pyramidkv kivi | | ways to drop keys of a finished model; nearest: nas-convert MODEL --cache 50%
topk | top_k | weights of the greatest scores alone
softmax_off_by_one quiet quiet_attention | softmax1 | one more in softmax's denominator
softpick rectified_softmax | | nearest: softmax1, relu_norm; as a plug-in it is a file of 20 lines, docs/how-to/plug-in.md
sigmoid_attention | sigmoid_attn | each score by itself, divided by the number of keys
relu_attention squared_relu_attention | relu_n | each score by itself, divided by the number of keys
entmax alpha_entmax | entmax15 | between softmax and sparsemax
ssmax scalable_softmax log_n | log_length | scores grow with the logarithm of the number of keys
softcap logit_cap logit_softcapping | soft_cap=50 | scores become c tanh(s / c)
qk_norm qknorm qk_layernorm | qk_norm=rms | RMS norm of queries and keys
sub_ln headnorm | head_norm=rms | RMS norm of each head's output
xsa exclusive exclusive_attention | value_exclusion | a head's output loses its part along the query's own value
value_residual resformer | value_embedding | nearest: values take a share of a row of a table of tokens
token_shift time_shift | smear | a learned share of the token before
forgetting fox forgetting_transformer fot selective selective_attention | decay=scalar | a forget gate of each head, which lets old keys fade
nope no_position | position_embedding=none | nothing is added to the embedding, and position=none is the default
rotary xpos | rope | rotated queries and keys
partial_rope p_rope | rope+rope_fraction=0.5 | that share of a head's entries is rotated
yarn ntk rope_scaling longrope llama3_rope position_interpolation | rope+rope_factor=4+rope_original=1024 | wavelengths so many times longer, by their turns in the original length as of Llama 3; YaRN's temperature is not here
relative relative_bias t5_bias kerple fire | t5 | a learned number for each class of distances
pathattention path_attention | position=path | queries and keys through products of reflections
contextual_position | position=cope | positions that count gates
linear_attention cosformer rfa aft | linear | a state of keys and values with elu + 1; performer: random features
retention lightning lightning_attention minimax s4 s4d s5 lru dss liquid_s4 | retnet | a state with fixed decays; transitions of S4 and its kin, which no token changes, are nearest to it
mamba2 ssd2 nemotron_h bamba | ssd+conv=4+swish_gate | Mamba-2's recurrence with convolution and gate; without its skip, and step on values
mamba mamba1 s6 ssm selective_ssm jamba_mamba mamba3 | | nearest: ssd (one decay of a head, chosen by the token), gla (one of each channel)
griffin hawk rglru rg_lru recurrentgemma hgrn hgrn2 qrnn sru | | states of one number per channel are not here; nearest: gla, or in 3 layers 2*gla/swa
rwkv rwkv6 rwkv7 goose finch eagle | | nearest: gla (RWKV-6), gdn2 (RWKV-7: gates of what is erased and written), with smear
xlstm mlstm slstm lstm gru rnn | | nearest: ssd+elementwise_gate, the matrix memory of mLSTM without its normalizer; states behind a nonlinearity are not here
hyena long_conv h3 monarch stripedhyena | | long convolutions are not here; nearest: mixer=conv (a short one between two gates), retnet
lfm2 shortconv short_conv gated_conv gmlp mlp_mixer fnet | mixer=conv | a short convolution between two gates
canon primer causal_conv conv1d | conv=4 | a short convolution of queries, keys and values
delta_rule fast_weights | deltanet | what was written under a key is corrected
gated_deltanet gated_delta gated_delta_rule gdn_gated | gdn | the delta rule with a decay of each head
deltaproduct delta_product negative_eigenvalues | deltanet+neg_eigen | one reflection a token; products of several are not here
kimi kimi_linear kimi_delta | kda | the delta rule with decays of channels; with decay_form=softplus and gates of a rank as released; in 4 layers 3*kda/attn
ttt titans atlas miras mesa mesanet lattice longhorn comba | | memories learned at test time but by one step of gradient descent are not here; nearest: deltanet (that step), gdn (with forgetting)
log_linear loglinear log_linear_attention infini infini_attention memorizing transformer_xl rmt compressive | | states that grow, and memories of segments, are not here; nearest: gdn, and swa in other layers
based taylor | mixer=recurrent+feature=taylor2+key_width=16 | exponentials to the second order; Based has swa and mixer=conv in other layers
lolcats liger | mixer=recurrent+feature=hedgehog+near=64 | softmax over the last keys, learned features before; nas-convert puts block near into a trained model
yoco cla cross_layer cross_layer_attention shared_kv | attn/attn{keys=shared} | a layer reads the keys and values of the nearest earlier one that has its own
jamba zamba zamba2 samba | ssd/swa | a stack of both, layer by layer; Jamba has attention in one of 8 layers
hymba falcon_h1 parallel_hybrid hybrid_head | 2*pair(attn|ssd) | heads of two kinds in one layer, as many of each; of Hymba without its meta tokens and norms of halves
qwen3_next qwen3_5 olmo_hybrid | gdn/attn{gating=elementwise_gate} | released with three of the first to one of the second: in 4 layers 3*gdn/attn{gating=elementwise_gate}
llama llama2 llama3 qwen2 smollm smollm2 | model{position_embedding=none,norm=rms,bias=none}/2*attn{position=rope,kv_heads=2}+swiglu | a trained one: nas-model import
qwen3 olmo2 | model{position_embedding=none,norm=rms,bias=none}/2*attn{position=rope,kv_heads=2,qk_norm=rms}+swiglu | a trained one of Qwen3: nas-model import
gemma gemma2 gemma3 | model{norm=rms,norm_place=sandwich,bias=none}/attn{pattern=window,position=rope,qk_norm=rms}/attn{position=rope,qk_norm=rms} | windows in 5 of 6 layers; Gemma 2 caps scores by soft_cap=50
gpt_oss | attn{normalization=sink,pattern=window,position=rope}/attn{normalization=sink,position=rope} | a window in every other layer, sinks in all
mixture_of_experts moe mixtral switch | | all tokens pass one feed-forward layer; nearest: swiglu
glu geglu reglu silu | swiglu | a gated feed-forward layer of as many parameters
squared_relu relu_squared | relu2 | relu(x) squared
rmsnorm rms_norm | norm=rms | norms of the residual stream
layernorm layer_norm | norm=layer | the default
pre_norm pre_ln | norm_place=pre | the default
peri_ln sandwich_norm | sandwich | norms before and behind each part
parallel_block palm gpt_j | block=parallel | mixer and feed-forward layer beside each other
hyper_connections mhc mixture_of_depths mod universal looped | | each layer adds to one stream, once; nearest: block, keys=shared
bert encoder bidirectional cross_attention perceiver linformer nystromformer synthesizer | | models here are causal, and each layer sees its own sequence; nearest: linear, swa
)";

std::vector<FieldWord> read_table() {
  std::vector<FieldWord> words;
  for (const auto line : split(kTable, '\n')) {
    if (line.empty()) continue;
    const auto first = line.find('|'), last = line.rfind('|');
    for (const auto word : split(trimmed(line.substr(0, first)), ' ')) {
      words.push_back({std::string(word),
                       std::string(trimmed(line.substr(first + 1, last - first - 1))),
                       std::string(trimmed(line.substr(last + 1)))});
    }
  }
  return words;
}

}  // namespace

const std::vector<FieldWord>& field_words() {
  static const auto kWords = read_table();
  return kWords;
}

std::string field_word(std::string_view word) {
  std::string sought(word);
  for (auto& c : sought) {
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  const auto found =
      std::find_if(field_words().begin(), field_words().end(),
                   [&](const FieldWord& candidate) { return candidate.word == sought; });
  if (found == field_words().end()) return {};
  return std::string(word) +
         (found->write.empty() ? " is not here: " : " is written " + found->write + ": ") +
         found->what;
}

std::string lead(std::string_view word, const std::vector<std::string>& known, bool listed) {
  if (const auto text = field_word(word); !text.empty()) return "; " + text;
  return listed ? did_you_mean(word, known) : known_text(word, known);
}

}  // namespace nas
