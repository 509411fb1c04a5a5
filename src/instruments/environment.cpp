#include "instruments/environment.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <torch/cuda.h>
#include <torch/version.h>
#include <unistd.h>
#ifdef NAS_TORCH_CUDA
#include <ATen/cuda/CUDAContext.h>
#endif

#include "core/error.hpp"
#include "kernels/instruction_set.hpp"
#include "ops/cpu_products.hpp"

namespace nas::nn {

namespace {

std::string library_of_symbol(const char* symbol) {
  void* address = dlsym(RTLD_DEFAULT, symbol);
  Dl_info info{};
  if (address == nullptr || dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  std::array<char, PATH_MAX> resolved{};
  return realpath(info.dli_fname, resolved.data()) != nullptr ? resolved.data() : info.dli_fname;
}

std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

/// LibTorch says it in lines of a text, in all its versions.
std::string torch_capability() {
  constexpr std::string_view kLine = "CPU capability usage: ";
  const auto config = at::show_config();
  const auto found = config.find(kLine);
  if (found == std::string::npos) return {};
  const auto begin = found + kLine.size();
  return config.substr(begin, config.find('\n', begin) - begin);
}

std::string blas_kernels() {
  const auto name =
      reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return name == nullptr ? std::string() : name();
}

/// Whether a variable may decide about bits: numerical libraries read it, or that which they come from.
bool decides(std::string_view name) {
  constexpr std::array<std::string_view, 5> kThreads{
      // how these wait, and where they run
      "OMP_WAIT_POLICY", "OMP_PROC_BIND", "OMP_PLACES", "OMP_DISPLAY_ENV", "GOMP_SPINCOUNT"};
  constexpr std::array<std::string_view, 21> kBegins{
      "ATEN_",        "TORCH_",         "PYTORCH_",
      "MKL_",         "OPENBLAS_",      "GOTO_",
      "BLIS_",        "OMP_",           "GOMP_",
      "KMP_",         "DNNL_",          "ONEDNN_",
      "MKLDNN_",      "XNNPACK_",       "CUBLAS_",
      "CUBLASLT_",    "CUDNN_",         "NVIDIA_TF32_OVERRIDE",
      "CUDA_MODULE_", "GLIBC_TUNABLES", "LD_PRELOAD"};
  if (std::find(kThreads.begin(), kThreads.end(), name) != kThreads.end()) return false;
  return std::any_of(kBegins.begin(), kBegins.end(),
                     [name](std::string_view begin) { return name.starts_with(begin); });
}

/// 0: cuBLAS never multiplies in TensorFloat-32; 1: always where it can; whatever a program asks.
constexpr const char* kTf32Override = "NVIDIA_TF32_OVERRIDE";
constexpr const char* kWorkspace = "CUBLAS_WORKSPACE_CONFIG";
constexpr std::array<std::pair<NumericalMode, const char*>, 3> kProducts{
    {{NumericalMode::exact, "exact_products"},
     {NumericalMode::tf32, "tf32_products"},
     {NumericalMode::fast, "fast_products"}}};

}  // namespace

Environment environment(bool products) {
  Environment environment;
  environment.torch_version = TORCH_VERSION;
  environment.torch_capability = torch_capability();
  environment.blas_library = library_of_symbol("sgemm_");
  environment.blas_kernels = blas_kernels();
  environment.libc = gnu_get_libc_version();
  environment.processor = processor_name();
  auto& kernels_for = environment.instruction_set;
  kernels_for = kernels::instruction_set();
  if (kernels_for.starts_with("AVX3")) kernels_for.replace(0, 4, "AVX-512");  // Highway's name
  for (const auto& [mode, key] : kProducts) {
    if (products) environment.products[key] = to_string(cpu_products(mode));
  }
  // Debian's reference implementation lies in .../blas/libblas.so.3; every other one names itself
  // in its path. A LibTorch with MKL inside exports no sgemm_ of another library, and is not slow.
  environment.slow_blas = environment.blas_library.find("/blas/libblas.so") != std::string::npos;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const auto name = text.substr(0, text.find('='));
    if (name == text || !decides(name) || !is_utf8(*variable)) continue;
    environment.variables[std::string(name)] = text.substr(name.size() + 1);
  }
  return environment;
}

nlohmann::json to_json(const Environment& environment) {
  nlohmann::json json{{"torch", environment.torch_version},
                      {"torch_capability", environment.torch_capability},
                      {"blas", environment.blas_library},
                      {"blas_kernels", environment.blas_kernels},
                      {"libc", environment.libc},
                      {"processor", environment.processor},
                      {"instruction_set", environment.instruction_set},
                      {"variables", environment.variables}};
  json.update(environment.products);
  return json;
}

void keep_products(const nlohmann::json& environment) {
  for (const auto& [mode, key] : kProducts) {
    const auto* before = mode == NumericalMode::exact ? "float32" : "";
    const auto recorded = parse_cpu_products(mode, environment.value(key, before));
    if (recorded && !are_cpu_products_given(mode)) use_cpu_products(mode, *recorded);
  }
}

void take_product_buffers(int threads) {
  constexpr int kMost = 64;                                // that OpenBLAS keeps
  constexpr std::size_t kBytes = std::size_t{160} << 20U;  // of a buffer, and some beside it
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const auto take = reinterpret_cast<void* (*)(int)>(dlsym(RTLD_DEFAULT, "blas_memory_alloc"));
  const auto give_back = reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "blas_memory_free"));
  if (take == nullptr || give_back == nullptr) return;  // another library
  std::vector<void*> buffers;
  bool enough = true;
  while (enough && std::ssize(buffers) < std::min(threads, kMost)) {
    void* const room = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    enough = room != MAP_FAILED;
    if (!enough) break;
    munmap(room, kBytes);
    buffers.push_back(take(0));
  }
  for (auto* buffer : buffers) give_back(buffer);
  if (enough) return;
  throw MachineError("the limit of this process's address space, " +
                     std::to_string(limit.rlim_cur / 1024) +
                     " KiB (ulimit -v), leaves too little for matrix products, which need 128 MiB "
                     "for each of " +
                     std::to_string(threads) + " threads");
}

std::string resolve_device(const std::string& setting) {
  if (setting == "cpu") return setting;
  const auto count =
      torch::cuda::is_available() ? static_cast<long>(torch::cuda::device_count()) : 0;
  if (setting == "auto") return count > 0 ? "cuda:0" : "cpu";
  const auto no_such_device = [&](const std::string& allowed) {
    return InputError("evaluation.device = " + setting + ", must be " + allowed);
  };
  long index = 0;
  if (setting != "cuda") {
    if (setting.rfind("cuda:", 0) != 0) throw no_such_device("auto, cpu, cuda or cuda:N");
    const char* end = setting.data() + setting.size();
    const auto result = std::from_chars(setting.data() + 5, end, index);
    if (result.ec != std::errc() || result.ptr != end || index < 0) {
      throw no_such_device("auto, cpu, cuda or cuda:N");
    }
  }
  if (index >= count) {
    throw no_such_device(count == 0 ? "auto or cpu: this LibTorch sees no CUDA device"
                                    : "auto, cpu or cuda:0 .. cuda:" + std::to_string(count - 1));
  }
  return "cuda:" + std::to_string(index);
}

std::string device_model(const std::string& setting) {
  const auto device = resolve_device(setting.substr(0, setting.find(',')));
#ifdef NAS_TORCH_CUDA
  if (device != "cpu") return at::cuda::getDeviceProperties(torch::Device(device).index())->name;
#endif
  return device == "cpu" ? processor_name() : device;
}

std::string device_of_place(std::int64_t place) {
  if (!torch::cuda::is_available()) return "cpu";
  return "cuda:" + std::to_string(place % static_cast<std::int64_t>(torch::cuda::device_count()));
}

void require_numerical_mode(NumericalMode mode, const std::string& device) {
  const auto setting = "evaluation.numerical_mode = " + std::string(to_string(mode));
  const bool in_tf32 = mode == NumericalMode::tf32;
  if (device == "cpu") return;
  const char* value = std::getenv(kTf32Override);
  if (value == nullptr || *value == '\0' || mode == NumericalMode::fast) return;
  if (in_tf32 != (std::string_view(value) == "0")) return;
  throw InputError(setting + ", but " + kTf32Override + " = " + value +
                   " in the environment makes cuBLAS multiply otherwise: unset it");
}

void require_determinism(NumericalMode mode, const std::string& device) {
  if (device == "cpu") return;
  const std::string setting = "evaluation.determinism = bitwise";
  if (mode == NumericalMode::reference) {
    throw InputError(
        setting +
        " on a CUDA device, must be relaxed with evaluation.numerical_mode = reference: "
        "LibTorch's backward operations add in no fixed order");
  }
  constexpr const char* kOwn = ":4096:8";  // what cuBLAS's manual gives: eight buffers of 4 MiB
  const char* value = std::getenv(kWorkspace);
  if (value == nullptr || *value == '\0') {
    setenv(kWorkspace, kOwn, 1);
  } else if (std::string_view(value) != kOwn && std::string_view(value) != ":16:8") {
    throw InputError(setting + ", but " + kWorkspace + " = " + value +
                     " in the environment, must be unset, :4096:8 or :16:8");
  }
  auto& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/true);
  // Nothing reads what nobody wrote, and filling it takes time (LibTorch 2.2 and newer).
  [](auto& any) {
    if constexpr (requires { any.setDeterministicFillUninitializedMemory(false); }) {
      any.setDeterministicFillUninitializedMemory(false);
    }
  }(context);
}

}  // namespace nas::nn
