use pulp::{Arch, Simd, WithSimd};

/// Calls `f`, compiled for the widest vector instructions that this machine has. `f` must be [`inlined`].
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

/// A closure that is `#[inline(always)]`, so that it is compiled for the vector instructions of the function that calls it.
macro_rules! inlined {
    ($closure:expr) => {{
        #[inline(always)]
        $closure
    }};
}
pub(crate) use inlined;
