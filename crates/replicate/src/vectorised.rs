use pulp::{Arch, Simd, WithSimd};

/// Runs `f` compiled for the widest vector instructions that this machine supports. `f` must be `#[inline(always)]` and `FnMut`:
/// an `FnOnce` closure would go through a shim that is compiled for the baseline instruction set.
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
