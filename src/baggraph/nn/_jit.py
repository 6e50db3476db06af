"""Triton where it is installed, and ``TRITON``, which says so; without, kernels can be read but not called."""

# mypy: ignore-errors

try:
    import triton
    import triton.language as tl

    TRITON = True
    jit, cdiv, next_power_of_2 = triton.jit, triton.cdiv, triton.next_power_of_2
except ImportError:
    from types import SimpleNamespace

    TRITON = False
    tl = SimpleNamespace(constexpr=int)

    def jit(kernel):
        """Leave the kernel as it is."""
        return kernel

    cdiv = next_power_of_2 = None

__all__ = ["TRITON", "cdiv", "jit", "next_power_of_2", "tl"]
