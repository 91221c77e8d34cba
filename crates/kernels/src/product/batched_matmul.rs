use super::batched_matmul_cpu;
use super::modules;
use super::sliced_product::{SlicedProduct, Slices};
use super::tiles::Cut;
use crate::core::half::Floats;
use crate::core::sizes::check_sizes;
use crate::core::stored_form::{StoredForm, with_element};
use crate::{
    Adapter, Arg, Cost, DType, Dispatch, Epilogue, Error, Kernel, MAX_WORKGROUPS, Matmul, MatmulFamily, Transpose, TwinArgs,
};

/// Matrix products of many pairs at once: `y[i] = op(a[i]) op(b[i])`.
///
/// # Shapes
/// `a`: `[n_batch, m, k]`, or `[n_batch, k, m]` if transposed; `b`: `[n_batch, k, n]`, or `[n_batch, n, k]`; `y`: `[n_batch, m, n]`; row-major.
/// # Dtypes
/// f32, or any of them f16 and bf16 by [`stored`](crate::stored); sums kept in f32, unless [f16 is allowed](crate::Adapter::f16_accumulation).
/// # Errors
/// [`Error::Size`] for more than 65535 matrices, or blocks of rows or columns.
/// # Cost
/// `2 n_batch m n k` operations, on a GPU in one dispatch. Operands are read as they are, transposed or not.
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
    /// The length summed over.
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

    /// The dispatch of one family, for a caller who has measured which is faster; [`Kernel::dispatches`] picks by adapter and shape.
    /// Tiles are [`MatmulFamily::Direct`] where the sizes are not multiples of 4.
    ///
    /// # Errors
    /// [`Error::Size`] where there are more blocks than can be dispatched, [`Error::Unsupported`] where `family` does not run on `adapter`.
    pub fn dispatches_by(&self, family: MatmulFamily, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.dispatches_of(&[], family, adapter)
    }

    fn dispatches_of(&self, dtypes: &[DType], family: MatmulFamily, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        family.check(self.name(), adapter)?;
        let Self { n_batch, m, n, .. } = *self;
        let one = self.one();
        let operands = [0, 1].map(|arg| dtypes.get(arg).copied().unwrap_or(DType::F32));
        let dispatch = match family.tiles(adapter, Cut::of(adapter, operands), [m, n], n_batch) {
            Some(tiles) if one.reads_vectors() => {
                let (slices, reads) = (Slices::Pairs(n_batch), [0, 1, 1]);
                let product = SlicedProduct { kernel: self.name(), matmul: &one, slices, reads, write: 2, dtypes };
                product.dispatch(family, adapter, tiles)
            }
            _ => self.direct(adapter, dtypes),
        };
        Ok(vec![dispatch?])
    }

    fn direct(&self, adapter: &Adapter, dtypes: &[DType]) -> Result<Dispatch, Error> {
        let Self { n_batch, m, n, k, transpose } = *self;
        let groups = [("n", n, n.div_ceil(GROUP_COLS)), ("m", m, m.div_ceil(GROUP_ROWS)), ("n_batch", n_batch, n_batch)];
        if let Some(&(size, found, _)) = groups.iter().find(|(.., n_groups)| *n_groups > MAX_WORKGROUPS as usize) {
            return Err(Error::Size { kernel: self.name(), size, found, expected: "at most 65535 blocks" });
        }
        let (label, template) = if self.one().is_of_vectors() {
            ("kernels.batched_matmul.direct", modules::BATCHED_MATMUL_DIRECT)
        } else {
            ("kernels.batched_matmul", modules::BATCHED_MATMUL)
        };
        let flag = |is: bool| f64::from(u8::from(is));
        let types: Vec<_> = ["A", "B", "Y"].into_iter().zip(dtypes.iter().copied()).collect();
        Ok(Dispatch {
            label,
            wgsl: template.module_on(adapter, &types),
            entry: "main",
            constants: vec![("TRANSPOSE_A", flag(transpose.a())), ("TRANSPOSE_B", flag(transpose.b()))],
            params: bytemuck::cast_slice(&[m as u32, n as u32, k as u32, 0]).to_vec(),
            reads: vec![0, 1],
            writes: vec![2],
            workgroups: groups.map(|(.., n_groups)| n_groups as u32),
        })
    }
}

/// Rows and columns that a workgroup computes.
const GROUP_ROWS: usize = 32;
const GROUP_COLS: usize = 32;

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
        batched_matmul_cpu::run(self, args.read(0), args.read(1), args.write(2));
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
    /// A result whose rows end within a word is in f32.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        let [a, b, y] = [dtypes[0], dtypes[1], if self.n.is_multiple_of(2) { dtypes[2] } else { DType::F32 }];
        [a, b, y].iter().any(|dtype| dtype.is_half()).then(|| vec![a, b, y])
    }

    fn stored_dispatches(&self, dtypes: &[DType], adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.dispatches_of(dtypes, MatmulFamily::choose(adapter, usize::MAX), adapter)
    }

    fn stored_twin(&self, dtypes: &[DType], args: &mut TwinArgs<'_>) {
        let [a, b] = [0, 1].map(|index| Floats::of(args, index, dtypes[index]));
        with_element!(dtypes[2], Y => batched_matmul_cpu::run_stored::<Y>(self, a, b, args.write(2)));
    }
}
