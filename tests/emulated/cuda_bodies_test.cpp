// The CUDA bodies: NVRTC compiles every primitive, for each architecture, with the options fuse uses.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "emulated/support.hpp"
#if FUSE_COMPILER_HAS_CUDA
#include "compile/toolchains/cuda/nvrtc.hpp"
#endif

namespace fuse::test {
namespace {

const std::vector<std::pair<std::string, std::string>> types = {
    {"double", "f64"},    {"float", "f32"}, {"f16", "f16"},  {"bf16", "bf16"},
    {"long long", "i64"}, {"int", "i32"},   {"bool", "bool"}};

// A kernel that uses one primitive with every type it is for.
std::string use(const std::string& name) {
  std::string text;
  int kernels = 0;
  const auto kernel = [&](const std::string& type, const std::string& statement) {
    text += "FUSE_KERNEL(256) k" + std::to_string(kernels++) + "(global<const " + type + "> x, global<" +
            type + "> y) {\n  const int i = threadIdx.x;\n  " + statement + "\n}\n";
  };
  if (name.starts_with("to_") && name != "to_odd") {
    const std::string to = name.substr(3);
    for (const auto& [type, suffix] : types) {
      kernel(type, "store(y, i, to_" + suffix + "(" + name + "(load(x, i))));");
    }
    return text;
  }
  if (name == "f16" || name == "bf16") {
    kernel(name, "store(y, i, load(x, static_cast<long long>(i)));");
  } else if (name == "group_barrier") {
    kernel("int", "group_barrier(y, 1, 2); store(y, i + 9, load(x, i));");
  } else if (name == "grid_barrier") {
    kernel("int", "grid_barrier(y); store(y, i + 1, load(x, i));");
  } else if (name.starts_with("cluster_")) {
    const std::string barrier = name == "cluster_shared_barrier" ? name : "cluster_barrier";
    const bool apart = name == "cluster_arrive" || name == "cluster_wait";
    const std::string last = apart ? "cluster_arrive();\n  store(y, i, v);\n  cluster_wait();"
                                   : "store(y, i, v);\n  " + barrier + "();";
    for (const auto& [type, suffix] : types) {
      text += "FUSE_KERNEL(256) FUSE_CLUSTER(8) k" + std::to_string(kernels++) + "(global<const " + type +
              "> x, global<" + type + "> y) {\n  FUSE_SHARED(" + type +
              ", 256, t);\n  const int i = threadIdx.x;\n  store(t, i, load(x, i));\n  " + barrier +
              "();\n  const " + type + " v = cluster_load(t, i, 7LL);\n  " + last + "\n}\n";
    }
  } else if (name == "load_vector" || name == "store_vector") {
    for (const auto& [type, suffix] : types) {
      const std::string own = "FUSE_LOCAL(" + type + ", 2, own); ";
      kernel(type, own + "load_vector(own, x, 2 * i); store_vector(y, 2 * i, own);");
    }
    kernel("float", "FUSE_LOCAL(float, 8, own); load_vector(own, x, 8 * i); store_vector(y, 8 * i, own);");
    for (const int n : {2, 4, 8, 16}) {
      kernel("signed char", "FUSE_LOCAL(signed char, " + std::to_string(n) +
                                ", own); load_vector(own, x, 16 * i); store_vector(y, 16 * i, own);");
    }
  } else if (name == "divisor_reciprocal" || name == "divide_vector") {
    kernel("float",
           "float a[4], q[4]; for (int k = 0; k < 4; ++k) a[k] = load(x, i + k); "
           "divide_vector(q, a, load(x, 0), divisor_reciprocal(load(x, 0))); "
           "for (int k = 0; k < 4; ++k) store(y, i + k, q[k]);");
  } else if (name == "pair" || name.ends_with("_pair") || name == "pair_of" || name.starts_with("first") ||
             name.starts_with("second")) {
    for (const char* type : {"f16", "bf16"}) {
      const std::string own = "FUSE_LOCAL(" + std::string(type) + ", 2, a); store(a, 0, load(x, i)); " +
                              "store(a, 1, load(x, i + 1)); const auto p = load_pair(a, 0); ";
      const bool binary = name == "add_pair" || name == "sub_pair" || name == "mul_pair" ||
                          name == "max_pair" || name == "min_pair";
      const bool unary = name == "neg_pair" || name == "abs_pair";
      const std::string result = binary ? name + "(p, p)" : unary ? name + "(p)" : "p";
      kernel(type, own + "store_pair(a, 0, " + result + "); const auto q = pair_of<" + type +
                       ">(second_f32(p), first_f32(p)); store(y, i, load(a, 1)); store(y, i + 1, first(q)); "
                       "store(y, i + 2, second(pair_of(load(a, 0), load(a, 1))));");
    }
  } else if (name == "shared" || name == "block_barrier" || name == "warp_barrier") {
    const std::string wait = name == "shared" ? "block_barrier" : name;
    for (const auto& [type, suffix] : types) {
      kernel(type, "FUSE_SHARED(" + type + ", 256, t); store(t, i, load(x, i)); " + wait +
                       "(); store(y, i, load(t, i ^ 1));");
    }
  } else if (name.starts_with("infinity") || name.starts_with("nan")) {
    kernel(name.ends_with("32") ? "float" : "double", "store(y, i, load(x, i) + " + name + "());");
  } else if (name == "divide" || name == "remainder" || name == "power") {
    for (const char* type : {"float", "double", "int", "long long"}) {
      kernel(type, "store(y, i, " + name + "(load(x, i), load(x, i + 1)));");
    }
  } else if (name == "maximum" || name == "minimum") {
    for (const char* type : {"float", "double", "int", "long long", "bool"}) {
      kernel(type, "store(y, i, " + name + "(load(x, i), load(x, i + 1)));");
    }
  } else if (name == "shuffle_xor") {
    for (const char* type : {"float", "double", "int", "long long", "bool"}) {
      kernel(type, "store(y, i, shuffle_xor(load(x, i), 4));");
    }
  } else if (name == "absolute" || name == "sign" || name == "warp_sum" || name == "warp_prod") {
    for (const char* type : {"float", "double", "int", "long long"}) {
      kernel(type, "store(y, i, " + name + "(load(x, i)));");
    }
  } else if (name == "warp_scan_sum") {
    for (const char* type : {"float", "double", "int", "long long", "signed char", "unsigned char"}) {
      kernel(type, std::string(type) + " carry = 0; store(y, i, warp_scan_sum(load(x, i), carry) + carry);");
    }
  } else if (name == "floor_div" || name == "floor_mod") {
    for (const char* type : {"int", "long long"})
      kernel(type, "store(y, " + name + "(i - 100, i % 2 == 0 ? 7 : -7) & 7, load(x, i));");
  } else if (name == "is_infinite") {
    for (const char* type : {"float", "double"})
      kernel(type, "store(y, i, is_infinite(load(x, i)) ? 1 : 0);");
  } else if (name == "fused") {
    kernel("float", "store(y, i, fused(load(x, i), load(x, i + 1), load(x, i + 2)));");
  } else if (name == "error_function" || name == "hyperbolic_tangent") {
    for (const char* type : {"float", "double"}) kernel(type, "store(y, i, " + name + "(load(x, i)));");
  } else if (name.ends_with("_approximate")) {
    kernel("float", "store(y, i, " + name + "(load(x, i)));");
  } else if (name == "shift_left" || name == "shift_right") {
    for (const char* type : {"int", "long long", "signed char", "unsigned char"}) {
      kernel(type, "store(y, i, " + name + "(load(x, i), load(x, i + 1)));");
    }
  } else if (name == "random_values" || name == "random_vector") {
    for (const char* type : {"float", "double"}) {
      for (const int n : {2, 4, 8}) {
        kernel(type, "FUSE_LOCAL(" + std::string(type) + ", " + std::to_string(n) + ", own); " + name +
                         "(own, 1, 2, 3, " + std::to_string(n) + " * i); store(y, i, own[0] + own[1]);");
      }
    }
  } else if (name.starts_with("random_")) {
    const std::string suffix = name == "random_words" ? ".w[1]" : "";
    kernel("long long", "store(y, i, " + name + "(load(x, 0), load(x, 1), 2, i)" + suffix + ");");
  } else if (name.starts_with("warp_")) {
    for (const char* type : {"float", "double", "int", "long long", "bool"}) {
      kernel(type, "store(y, i, " + name + "(load(x, i)));");
    }
  } else {
    kernel("float", "store(y, i, load(x, i));");
  }
  return text;
}

std::vector<std::string> used_names(const std::string& text, const std::string& name) {
  std::vector<std::string> names = {name, "global", "load", "store"};
  for (const codegen::Primitive& p : codegen::primitives()) {
    if (text.find(std::string(p.name) + "(") != std::string::npos) names.emplace_back(p.name);
  }
  for (const char* macro : {"FUSE_SHARED", "FUSE_CLUSTER", "FUSE_LOCAL"}) {
    if (text.find(macro) != std::string::npos) names.emplace_back(macro);
  }
  for (const char* type : {"f16", "bf16"}) names.emplace_back(type);
  return names;
}

}  // namespace

#if FUSE_COMPILER_HAS_CUDA
TEST_CASE("NVRTC compiles the CUDA body of every primitive", "[emulated][nvrtc]") {
  if (!runtime::nvrtc_available()) {
    WARN("skipped: libnvrtc was not found");
    return;
  }
  for (const int arch : {75, 80, 90}) {
    for (const codegen::Primitive& p : codegen::primitives()) {
      if (arch < 90 && p.name.starts_with("cluster_")) continue;  // those GPUs have no clusters
      codegen::Source source;
      source.name = "primitive";
      source.body = use(std::string(p.name));
      source.prelude = codegen::cuda_prelude(used_names(source.body, std::string(p.name)));
      INFO("sm_" << arch << ' ' << p.name);
      CHECK_FALSE(runtime::compile_to_cubin(source, arch, 1).image.empty());
    }
  }
}
#endif

TEST_CASE("a prelude holds what is used and what that needs, in table order", "[emulated]") {
  const std::string none = codegen::cuda_prelude({});
  CHECK(none.find("FUSE_KERNEL") != std::string::npos);
  CHECK(none.find("__device__") == std::string::npos);
  const std::string sum = codegen::cuda_prelude({"warp_max", "load", "expf", "FUSE_SHARED"});
  CHECK(sum.find("T warp_max(") > sum.find("T shuffle_xor("));
  CHECK(sum.find("T shuffle_xor(") > sum.find("T maximum("));
  CHECK(sum.find("T load(") != std::string::npos);
  CHECK(sum.find("FUSE_SHARED") != std::string::npos);
  CHECK(sum.find("minimum") == std::string::npos);
  CHECK(sum.find("#include") == std::string::npos);
}

TEST_CASE("the table is well formed", "[emulated]") {
  std::set<std::string_view> seen;
  for (const codegen::Primitive& p : codegen::primitives()) {
    INFO(p.name);
    for (std::string_view need : p.needs) CHECK(seen.count(need) == 1);  // what it needs stands before it
    CHECK(seen.insert(p.name).second);
    CHECK(codegen::find_primitive(p.name) == &p);
    CHECK_FALSE(p.cuda.empty());
    CHECK_FALSE(p.host.empty());
  }
  CHECK(codegen::find_primitive("FUSE_SHARED") == codegen::find_primitive("shared"));
  CHECK(codegen::find_primitive("expf") == nullptr);
  CHECK(codegen::find_primitive("block_barrier")->communicates);
  CHECK_FALSE(codegen::find_primitive("maximum")->communicates);
  for (const bool checked : {false, true})
    CHECK(codegen::host_prelude(checked).find("#include") == std::string::npos);
}

}  // namespace fuse::test
