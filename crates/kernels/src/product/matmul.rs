use super::epilogue_cpu::Finish;
use super::{matmul_batch_cpu, matmul_gpu};
use crate::adapter::adapter::Adapter;
use crate::adapter::matmul_family::MatmulFamily;
use crate::arg::{Access, Arg};
use crate::conversion::stored_form::{StoredForm, by_stored_form};
use crate::dtype::DType;
use crate::error::Error;
use crate::gemm::packing::Packing;
use crate::gemm::transpose::Transpose;
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::floats::Floats;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::map::map::Map;
use crate::product::epilogue::Epilogue;
use crate::shader::dispatch::Dispatch;
use crate::storage::element::with_element;

/// Matrix products with a fused epilogue: `y[i] = epilogue(op(a[i]) op(b[i]))`, for one pair of matrices or a batch of them.
///
/// The three products of a linear layer are this kernel: forward `x Wᵀ` with [`Epilogue::bias`], the gradient of the input
/// `dz W`, whose epilogue is the derivative of the preceding activation, and the gradient of the weights `dzᵀ x`.
///
/// # Shapes
/// `a`: `[n_batch, m, k]`, or `[n_batch, k, m]` if transposed; `b`: `[n_batch, k, n]`, or `[n_batch, n, k]` if transposed; `y`:
/// `[n_batch, m, n]`; all row-major, contiguous.
/// # Dtypes
/// f32, or any of them f16 and bf16 by [`stored`](crate::stored); sums kept in f32, unless
/// [f16 is allowed](crate::Adapter::f16_accumulation).
/// # Cost
/// `2 n_batch m n k` operations, on a GPU in one dispatch. The CPU first copies one operand in the order of use. If there are few
/// results and `k` is long, hardware sums parts of `k` separately (split-K), in scratch of up to 4 MiB.
/// # Reference
/// `torch.matmul`, `torch.bmm`; Goto & van de Geijn 2008, *Anatomy of high-performance matrix multiplication*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matmul {
    /// Pairs of matrices; 1 for a single product.
    pub n_batch: usize,
    /// Rows of each result.
    pub m: usize,
    /// Columns of each result.
    pub n: usize,
    /// The K dimension.
    pub k: usize,
    /// Which operands are stored transposed.
    pub transpose: Transpose,
    /// The operation on each sum before it is stored.
    pub epilogue: Epilogue,
}

/// The arguments that are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reads<'a> {
    pub(crate) a: Floats<'a>,
    pub(crate) b: Floats<'a>,
    /// Bias or output, if the epilogue takes one.
    pub(crate) fused: Floats<'a>,
}

impl Matmul {
    /// Whether there are several pairs.
    pub(crate) const fn is_batch(&self) -> bool {
        self.n_batch != 1
    }

    /// The dispatches of one family, for callers that have measured which is faster; [`Kernel::dispatches`] chooses by adapter
    /// and shape.
    ///
    /// # Errors
    /// [`Error::Size`] if there are more blocks than can be dispatched, [`Error::Unsupported`] if `family` does not run on
    /// `adapter`.
    pub fn dispatches_by(&self, family: MatmulFamily, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.dispatches_of(&[], family, adapter)
    }

    /// The same for arguments stored as `dtypes` says, or in f32 if `dtypes` is empty.
    pub(crate) fn dispatches_of(
        &self,
        dtypes: &[DType],
        family: MatmulFamily,
        adapter: &Adapter,
    ) -> Result<Vec<Dispatch>, Error> {
        matmul_gpu::dispatches(self, self.stored_args(dtypes), family, adapter)
    }

    /// The scratch arguments, which follow `y`.
    pub(crate) fn scratch(&self) -> Vec<Arg> {
        let Self { m, n, .. } = *self;
        let parts = (self.n_parts() > 1).then(|| Arg::scratch("parts", DType::F32, [self.n_parts(), m, n]));
        parts.into_iter().collect()
    }

    /// The twin for arguments that have these names in the list of another kernel, which has the same epilogue.
    pub(crate) fn twin_over(&self, finish: Finish, [a, b, y]: [&'static str; 3], args: &mut TwinArgs<'_>) {
        let reads = Reads { a: Floats::of(args, a), b: Floats::of(args, b), fused: self.epilogue.operand_of(args) };
        match (reads, args.dtype(y)) {
            (Reads { a: Floats::F32(a), b: Floats::F32(b), fused: Floats::F32(fused) }, DType::F32) => {
                matmul_batch_cpu::run(self, [a, b], args.packed, (&finish, fused), args.write(y));
            }
            (reads, dtype) => {
                with_element!(dtype, Y => matmul_batch_cpu::run_stored::<Y>(self, reads, &finish, args.write(y)))
            }
        }
    }
}

impl Kernel for Matmul {
    fn signature(&self) -> Signature {
        let Self { n_batch, m, n, k, .. } = *self;
        let mut args = vec![Arg::read("a", DType::F32, [n_batch, m, k]), Arg::read("b", DType::F32, [n_batch, k, n])];
        args.extend(self.epilogue.args(n_batch.saturating_mul(m), n));
        args.push(Arg::write("y", DType::F32, [n_batch, m, n]));
        args.extend(self.scratch());
        Signature::new("matmul", args)
    }

    fn check(&self) -> Result<(), Error> {
        self.epilogue.check(self.name())?;
        check_sizes(self, &[("n_batch", self.n_batch), ("m", self.m), ("n", self.n), ("k", self.k)])
    }

    by_stored_form!();

    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.twin_over(Finish::new(&self.epilogue, args), ["a", "b", "y"], args);
    }

    fn followed_by(&self, map: &Map, input: usize) -> Option<Box<dyn Kernel>> {
        // Splitting K saves more time than fusing a kernel.
        let epilogue = if self.n_parts() == 1 { self.epilogue.followed_by(map, input)? } else { return None };
        Some(Box::new(Self { epilogue, ..*self }))
    }

    fn packing(&self) -> Option<Packing> {
        let Self { n_batch, m, n, k, transpose, .. } = *self;
        (n_batch == 1 && m > 1 && n > 1 && k > 1 && !transpose.a()).then_some(Packing { arg: 1, size: [k, n], transpose })
    }

    fn cost(&self) -> Cost {
        let bytes = self.args().iter().filter(|arg| arg.access != Access::Scratch).map(|arg| arg.len_bytes() as u64).sum();
        Cost { flops: 2 * (self.n_batch * self.m * self.n * self.k) as u64, bytes }
    }
}

/// Any of the arguments in 16 bits.
impl StoredForm for Matmul {
    /// The sum of parts of K is in f32, and so is a result whose rows end within a word, unless it has few columns.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        let mut nearest = dtypes.to_vec();
        if self.n_parts() > 1 || !self.stores_halves() {
            // `y` comes after `a`, `b` and the epilogue's arguments.
            nearest[2 + self.epilogue.n_args()] = DType::F32;
        }
        nearest.iter().any(|dtype| dtype.is_half()).then_some(nearest)
    }

    fn stored_dispatches(&self, dtypes: &[DType], adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let n_cols = if self.is_batch() { usize::MAX } else { self.n };
        self.dispatches_of(dtypes, MatmulFamily::choose(adapter, n_cols), adapter)
    }
}
