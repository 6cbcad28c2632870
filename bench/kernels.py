"""What the compiler makes of a model's parts for a GPU: kernels, and what they read and write. Needs no GPU.

    python bench/kernels.py [SETTINGS] [--rows 1024] [--tokens 32] [--limit 30] [--combined]

An encoder layer, a decoder layer and the loss of SETTINGS (configs/europarl-de-en.toml) are compiled as a captured step
compiles them, each by itself, for an H200. Products of matrices and attention are left out: they have kernels of their
own. A figure is the bytes of all that is read and written, in tensors of one feature in bfloat16 for each token and
dimension of the model, and the number of kernels. `--limit` is the number of operations above which inductor stores an
intermediate result, 30 by itself; `--combined` lets it make one kernel of several that do not need each other.

Only running needs a GPU. Here tensors have no values; a library that is compiled first and loaded before torch says
that there is a device and that nothing on it has to be waited for; and what torch and Triton ask the driver is answered
for an H200. So the script needs a build of torch for CPUs, Triton and g++, and depends on the insides of torch: it was
written for 2.13.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError

ROOT = Path(__file__).parent.parent
PIECES = 8000
BEGUN = "REGARD_KERNELS"  # set where the library is loaded
STAND_IN = r"""
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

using c10::Device, c10::DeviceIndex, c10::DeviceType, c10::EventFlag, c10::Stream;

namespace {
const Device only(DeviceType::CUDA, 0);

struct Guard : c10::impl::NoOpDeviceGuardImpl<DeviceType::CUDA> {
  Device exchangeDevice(Device) const override { return only; }
  Device getDevice() const override { return only; }
  Stream getStream(Device) const noexcept override { return Stream(Stream::DEFAULT, only); }
  Stream exchangeStream(Stream) const noexcept override { return Stream(Stream::DEFAULT, only); }
  DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const Stream&, const DeviceIndex, const EventFlag) const override {}
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const DeviceIndex) const noexcept override {}
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard);

struct CUDAHooks : at::CUDAHooksInterface {
  CUDAHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  int getNumGPUs() const override { return 1; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex getCurrentDevice() const override { return 0; }
};
}
namespace at { REGISTER_CUDA_HOOKS(CUDAHooks); }
"""
H200 = SimpleNamespace(
    name="NVIDIA H200", major=9, minor=0, multi_processor_count=132, total_memory=140 << 30, warp_size=32,
    regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048, max_threads_per_block=1024,
    shared_memory_per_block=48 << 10, shared_memory_per_block_optin=227 << 10, L2_cache_size=50 << 20, gcnArchName="",
    clock_rate=1_980_000, memory_clock_rate=3_201_000, memory_bus_width=6144,
)  # fmt: skip


def begin_again() -> None:
    """Start this process once more, with the library that stands in for a GPU."""
    with tempfile.TemporaryDirectory() as folder:
        source, library, home = Path(folder) / "device.cpp", Path(folder) / "device.so", Path(torch.__file__).parent
        source.write_text(STAND_IN)
        links = [f"-L{home}/lib", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{home}/lib"]
        build = ["g++", "-std=c++20", "-shared", "-fPIC", f"-I{home}/include", str(source), *links, "-o", str(library)]
        subprocess.run(build, check=True)
        loaded = f"{library} {os.environ.get('LD_PRELOAD', '')}".strip()
        more = {BEGUN: "1", "LD_PRELOAD": loaded, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}  # compiled anew each time
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=dict(os.environ) | more, check=False).returncode)


class Nothing:
    """A kernel that is not compiled, and a device that nothing has to be done to."""

    def __init__(self, *_: object) -> None: ...
    def run(self, *_: object, **__: object) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def pretend() -> None:
    """Answer for an H200 what is asked before anything is computed."""
    changed: Any = torch.cuda  # whose functions are replaced
    for name, found in {
        "is_available": True, "is_initialized": True, "_is_compiled": True, "is_bf16_supported": True,
        "device_count": 1, "current_device": 0, "_exchange_device": 0, "_maybe_exchange_device": 0,
        "get_device_capability": (9, 0), "get_device_name": H200.name, "get_device_properties": H200,
        "init": None, "_lazy_init": None, "set_device": None, "synchronize": None,
        "get_rng_state": torch.zeros(16, dtype=torch.uint8), "set_rng_state": None,
    }.items():  # fmt: skip
        setattr(changed, name, lambda *_, found=found, **__: found)
    changed.device = Nothing
    inside: Any = torch._C
    inside._cuda_getCurrentRawStream = lambda _: 0
    guards = inside._dynamo.guards  # from which generated code takes how it makes tensors
    guards._empty_strided_cuda = lambda size, steps, kind: torch.empty_strided(size, steps, dtype=kind, device="cuda")
    guards._reinterpret_tensor = lambda tensor, size, steps, first=0: tensor.as_strided(size, steps, first)
    for name in ("scalar_tensor", "empty.memory_format", "empty_strided"):  # small constants, which have values
        LIBRARY.impl(name, lambda *given, name=name, **more: of_cpu(name)(*given, **more | {"device": "cpu"}), "CUDA")
    torch.version.cuda = "13.0"
    # What follows takes the functions above when it is imported.
    import torch._inductor.fx_passes.fuse_attention as attention  # noqa: PLC0415
    from torch._dynamo.device_interface import CudaInterface  # noqa: PLC0415
    from torch._inductor.async_compile import AsyncCompile  # noqa: PLC0415
    from torch.utils import _triton  # noqa: PLC0415
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415
    from triton.runtime import driver  # noqa: PLC0415

    CudaInterface.is_available = staticmethod(lambda: True)
    _triton.has_triton = _triton.has_triton_package = lambda: True
    target = GPUTarget("cuda", 90, 32)
    driver._active = driver._default = SimpleNamespace(
        get_current_target=lambda: target, get_current_device=lambda: 0, get_active_torch_device=lambda: "cuda"
    )
    AsyncCompile.triton = lambda *_, **__: Nothing()
    AsyncCompile.wait = lambda *_: None
    attention._sfdp_init = lambda *_: None  # patterns of attention, which is ours here


LIBRARY = torch.library.Library("aten", "IMPL")


def of_cpu(name: str) -> Any:
    plain, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, plain), overload or "default")


class Parts(nn.Module):
    """One encoder layer, one decoder layer and the loss, in a model of one of each."""

    def __init__(self, settings: str) -> None:
        import regard  # noqa: PLC0415  after the device is there
        from regard.tasks.task import CrossEntropy, Task  # noqa: PLC0415

        super().__init__()
        model = regard.load_settings(settings, "model.encoder_depth=1", "model.decoder_depth=1").model
        self.model = regard.encoder_decoder(model, source_size=PIECES, target_size=PIECES)
        self.cross_entropy, self.width = CrossEntropy(), model.width
        Task.compile_parts(self, "inductor")

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        from regard.nn import masks  # noqa: PLC0415

        _, state = self.model.start(source)
        features, _ = self.model.advance(target[:, :-1], state, masks.padding(target[:, :-1]))
        return self.cross_entropy(self.model.project(features), target[:, 1:], 0.1)

    def without_values(self) -> None:
        """Put the model on the device, inside a mode in which tensors have no values."""
        made = dict[int, Tensor]()
        for module in self.modules():
            for tensors in (module._parameters, module._buffers):
                for name, old in tensors.items():
                    if old is not None and id(old) not in made:
                        new = torch.empty(old.shape, dtype=old.dtype, device="cuda")
                        made[id(old)] = nn.Parameter(new) if isinstance(old, nn.Parameter) else new
                    tensors[name] = None if old is None else made[id(old)]


NAMES = [f"{part}, {way}" for part in ("encoder layer", "decoder layer", "loss") for way in ("forward", "backward")]


def main() -> None:
    parser = argparse.ArgumentParser(description="Kernels of compiled parts, and what they read and write.")
    parser.add_argument("settings", nargs="?", default=str(ROOT / "configs" / "europarl-de-en.toml"))
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--limit", type=int, default=0, help="operations above which an intermediate result is stored")
    parser.add_argument("--combined", action="store_true", help="one kernel of several that do not need each other")
    asked = parser.parse_args()
    if torch.version.cuda or not find_spec("triton") or not shutil.which("g++"):
        parser.error("needs a build of torch for CPUs, Triton and g++")
    if BEGUN not in os.environ:
        begin_again()
    warnings.simplefilter("ignore")  # of torch, about caches and tensors without values
    pretend()
    from torch._inductor import config as inductor  # noqa: PLC0415
    from torch._inductor.graph import GraphLowering  # noqa: PLC0415
    from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: PLC0415

    found, plain = list[tuple[int, int]](), GraphLowering.codegen

    def counted(graph: GraphLowering) -> Any:
        code = plain(graph)
        own = [node for node in graph.scheduler.nodes if not node.is_extern()]
        found.append((sum(node.get_read_write_buffers_sizes() for node in own), code[0].value.count(".run(")))
        return code

    GraphLowering.codegen = counted
    try:
        parts = Parts(asked.settings)
    except RegardError as error:
        parser.error(f"{error}")  # settings of another kind than a Transformer's are refused so
    inductor.combo_kernels = asked.combined
    inductor.realize_opcount_threshold = asked.limit or inductor.realize_opcount_threshold
    began = time.process_time()
    with FakeTensorMode(allow_non_fake_inputs=True), torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
        parts.without_values()
        source, target = (torch.randint(4, 99, (asked.rows, asked.tokens + more), device="cuda") for more in (0, 1))
        parts(source, target).backward()
    unit = 2 * asked.rows * asked.tokens * parts.width
    for name, (size, kernels) in zip(NAMES, found, strict=True):
        print(f"{name:<24}{size / unit:6.1f} tensors  {kernels:3} kernels")
    print(f"{time.process_time() - began:.1f} s of CPU time to compile")


if __name__ == "__main__":
    main()
