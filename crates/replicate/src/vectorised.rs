use pulp::{Arch, Simd, WithSimd};

/// Runs `f` as compiled for the widest vector instructions that this machine has. `f` is to be `#[inline(always)]`, and a closure that may be called
/// again: one that is called once goes through a shim that is compiled for the oldest machine.
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
