use super::batched_matmul_cpu;
use super::matmul_gpu::Product;
use crate::core::half::Floats;
use crate::core::sizes::check_sizes;
use crate::core::stored_form::{StoredForm, with_element};
use crate::{Adapter, Arg, Cost, DType, Dispatch, Epilogue, Error, Kernel, Matmul, MatmulFamily, Transpose, TwinArgs};

/// Batched matrix products: `y[i] = op(a[i]) op(b[i])`.
///
/// # Shapes
/// `a`: `[n_batch, m, k]`, or `[n_batch, k, m]` if transposed; `b`: `[n_batch, k, n]`, or `[n_batch, n, k]`; `y`: `[n_batch, m, n]`; row-major.
/// # Dtypes
/// f32, or any of them f16 and bf16 by [`stored`](crate::stored); sums kept in f32, unless [f16 is allowed](crate::Adapter::f16_accumulation).
/// # Errors
/// [`Error::Size`] for more than 65535 blocks of columns, or 65535² blocks of rows.
/// # Cost
/// `2 n_batch m n k` operations, on a GPU in one dispatch. Operands are read in place, transposed or not.
/// # Reference
/// `torch.bmm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchedMatmul {
    /// Pairs of matrices.
    pub n_batch: usize,
    /// Rows of each result.
    pub m: usize,
    /// Columns of each result.
    pub n: usize,
    /// The K dimension.
    pub k: usize,
    /// Which operands are stored transposed.
    pub transpose: Transpose,
}

impl BatchedMatmul {
    /// The product of one pair.
    pub(crate) fn one(&self) -> Matmul {
        let Self { m, n, k, transpose, .. } = *self;
        Matmul { m, n, k, transpose, epilogue: Epilogue::none() }
    }

    /// The dispatch of one family, for callers that have measured which is faster; [`Kernel::dispatches`] chooses by adapter and shape.
    ///
    /// # Errors
    /// [`Error::Size`] if there are more blocks than can be dispatched, [`Error::Unsupported`] if `family` does not run on `adapter`.
    pub fn dispatches_by(&self, family: MatmulFamily, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.dispatches_of(&[], family, adapter)
    }

    fn dispatches_of(&self, dtypes: &[DType], family: MatmulFamily, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let (matmul, args) = (&self.one(), self.stored_args(dtypes));
        Product { kernel: self.name(), matmul, n_pairs: Some(self.n_batch), args }.dispatches(family, adapter)
    }
}

impl Kernel for BatchedMatmul {
    fn name(&self) -> &'static str {
        "batched_matmul"
    }

    fn args(&self) -> Vec<Arg> {
        let Self { n_batch, m, n, k, .. } = *self;
        vec![
            Arg::read("a", DType::F32, [n_batch, m, k]),
            Arg::read("b", DType::F32, [n_batch, k, n]),
            Arg::write("y", DType::F32, [n_batch, m, n]),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        let Self { n_batch, m, n, k, .. } = *self;
        check_sizes(self, &[("n_batch", n_batch), ("m", m), ("n", n), ("k", k)])
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.stored_dispatches(&[], adapter)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        match (Floats::of(args, "a"), Floats::of(args, "b"), args.dtype("y")) {
            (Floats::F32(a), Floats::F32(b), DType::F32) => batched_matmul_cpu::run(self, a, b, args.write("y")),
            (a, b, dtype) => with_element!(dtype, Y => batched_matmul_cpu::run_stored::<Y>(self, a, b, args.write("y"))),
        }
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        self.stored_form(dtypes)
    }

    fn cost(&self) -> Cost {
        let Cost { flops, bytes } = self.one().cost();
        Cost { flops: self.n_batch as u64 * flops, bytes: self.n_batch as u64 * bytes }
    }
}

/// Any of the arguments in 16 bits.
impl StoredForm for BatchedMatmul {
    /// A result whose rows end in the middle of a word is in f32.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        let [a, b, y] = [dtypes[0], dtypes[1], if self.n.is_multiple_of(2) { dtypes[2] } else { DType::F32 }];
        [a, b, y].iter().any(|dtype| dtype.is_half()).then(|| vec![a, b, y])
    }

    fn stored_dispatches(&self, dtypes: &[DType], adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.dispatches_of(dtypes, MatmulFamily::choose(adapter, usize::MAX), adapter)
    }
}
