use pulp::{Arch, Simd, WithSimd};

/// Runs `f` as compiled for the widest vector instructions that this machine has. `f` is to be `#[inline(always)]`.
///
/// A closure given to `Arch::dispatch` as it is goes through a shim, `FnOnce::call_once`, which is compiled once for the oldest
/// machine and not inlined; through `FnMut` there is none.
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
