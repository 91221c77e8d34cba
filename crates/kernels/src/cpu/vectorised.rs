use pulp::{Arch, Simd, WithSimd};

/// Calls `f`, compiled for the widest vector instructions that this machine has. `f` must be `#[inline(always)]`.
///
/// A closure passed directly to `Arch::dispatch` goes through a shim, `FnOnce::call_once`, which is compiled once for the
/// baseline instruction set and not inlined; `FnMut` needs no shim.
#[inline]
pub(crate) fn vectorised(f: impl FnMut()) {
    Arch::new().dispatch(Body(f));
}

struct Body<F>(F);

impl<F: FnMut()> WithSimd for Body<F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        (self.0)();
    }
}
