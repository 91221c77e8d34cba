use super::embedding_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::module;
use crate::sizes::check_size;

/// Looks up the row of a table for each code: `y[i, c] = weight[index[i, index_col], c]`.
///
/// A code beyond the table is read as code 0, the entry for missing or unknown values.
///
/// # Shapes
/// `weight`: `[n_entries, dim]`; `index`: `[n, n_index_cols]`, of which one column is used; `y`: `[n, dim]`.
/// # Dtypes
/// `index` u32; the rest f32.
/// # Reference
/// `torch.nn.functional.embedding`, which refuses codes beyond the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Embedding {
    /// Rows.
    pub n: usize,
    /// Rows of the table.
    pub n_entries: usize,
    /// Columns of the table.
    pub dim: usize,
    /// Columns of `index`.
    pub n_index_cols: usize,
    /// The column of `index` that holds the codes.
    pub index_col: usize,
}

impl Embedding {
    fn params(&self) -> [(&'static str, usize); 5] {
        let Self { n, n_entries, dim, n_index_cols, index_col } = *self;
        [("n", n), ("n_entries", n_entries), ("dim", dim), ("n_index_cols", n_index_cols), ("index_col", index_col)]
    }

    fn check_for(&self, kernel: &impl Kernel) -> Result<(), Error> {
        let Self { n, n_entries, dim, n_index_cols, index_col } = *self;
        check_size(kernel.name(), ("index_col", index_col), index_col < n_index_cols, "a column of `index`")?;
        check_sizes(kernel, &[("n", n), ("n_entries", n_entries), ("dim", dim), ("n_index_cols", n_index_cols)])
    }

    /// The entry of each row.
    pub(crate) fn entries<'a>(&self, index: &'a [u32]) -> impl Iterator<Item = usize> + 'a {
        let n_entries = self.n_entries;
        let codes = index.iter().skip(self.index_col).step_by(self.n_index_cols);
        codes.map(move |&code| if (code as usize) < n_entries { code as usize } else { 0 })
    }
}

impl Kernel for Embedding {
    fn signature(&self) -> Signature {
        let args = [
            Arg::read("weight", DType::F32, [self.n_entries, self.dim]),
            Arg::read("index", DType::U32, [self.n, self.n_index_cols]),
            Arg::write("y", DType::F32, [self.n, self.dim]),
        ];
        Signature::new("embedding", args)
    }

    fn check(&self) -> Result<(), Error> {
        self.check_for(self)
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let module = module!("embedding.wgsl", "embedding_entry.wgsl");
        let embedding = Dispatch::elementwise(self.name(), "kernels.embedding", module, self.n * self.dim)?;
        Ok(vec![embedding.params(self.params()).bind(&self.args(), ["weight", "index"], ["y"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        embedding_cpu::run(self, args.read("weight"), args.read("index"), args.write("y"));
    }

    fn cost(&self) -> Cost {
        Cost { flops: 0, bytes: (8 * self.n * self.dim + 4 * self.n) as u64 }
    }
}

/// The gradient of [`Embedding`]'s table: `grad_weight[e, c] = Σ_i grad_y[i, c]` over the rows `i` of entry `e`, 0 without any.
///
/// # Shapes
/// `grad_y`: `[n, dim]`; `index`: `[n, n_index_cols]`; `grad_weight`: `[n_entries, dim]`.
/// # Dtypes
/// `index` u32; the rest f32. An entry's rows are added in order (on a GPU, for a table of few entries, in blocks of 64 rows
/// whose sums are added in order), without float atomics, so that results are bit-identical in every run.
/// # Cost
/// On a GPU `n * n_entries * dim` comparisons for a table of at most 64 entries. For a larger one, the rows of each entry are
/// linked in a chain: fewer than `n² / 2` comparisons, and as many sequential steps as the most frequent entry has rows.
/// # Reference
/// The backward pass of `torch.nn.functional.embedding`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingGrad {
    /// The forward kernel.
    pub forward: Embedding,
    /// The entry that gets no gradient, PyTorch's `padding_idx`.
    pub padding: Option<usize>,
}

/// Stands for "no padding entry" and for "no row".
pub(crate) const NONE: u32 = u32::MAX;
/// The maximum number of entries for which sums are computed in blocks of rows rather than along chains.
const MOST_IN_PARTS: usize = 64;
/// Rows per block. The shader uses the same number.
const PART_ROWS: usize = 64;

impl EmbeddingGrad {
    fn n_parts(&self) -> usize {
        self.forward.n.div_ceil(PART_ROWS)
    }

    fn is_in_parts(&self) -> bool {
        self.forward.n_entries <= MOST_IN_PARTS
    }

    fn params(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let padding = self.padding.unwrap_or(NONE as usize);
        self.forward.params().into_iter().chain([("padding", padding), ("n_parts", self.n_parts())])
    }
}

impl Kernel for EmbeddingGrad {
    fn signature(&self) -> Signature {
        let Embedding { n, n_entries, dim, n_index_cols, .. } = self.forward;
        let mut args = vec![
            Arg::read("grad_y", DType::F32, [n, dim]),
            Arg::read("index", DType::U32, [n, n_index_cols]),
            Arg::write("grad_weight", DType::F32, [n_entries, dim]),
        ];
        if self.is_in_parts() {
            args.push(Arg::scratch("parts", DType::F32, [self.n_parts(), n_entries, dim]));
        } else {
            args.extend([Arg::scratch("heads", DType::U32, n_entries), Arg::scratch("next", DType::U32, n)]);
        }
        Signature::new("embedding_grad", args)
    }

    fn check(&self) -> Result<(), Error> {
        let padding = self.padding.unwrap_or(0);
        let is_valid = self.padding.is_none() || padding < self.forward.n_entries;
        check_size(self.name(), ("padding", padding), is_valid, "an entry of the table")?;
        self.forward.check_for(self)
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let Embedding { n, n_entries, dim, .. } = self.forward;
        let args = self.args();
        let over = |module, n| -> Result<Dispatch, Error> {
            Ok(Dispatch::elementwise(self.name(), "kernels.embedding_grad", module, n)?.params(self.params()))
        };
        if self.is_in_parts() {
            let parts = over(module!("embedding_grad_parts.wgsl", "embedding_entry.wgsl"), self.n_parts() * n_entries * dim)?;
            let add = over(module!("embedding_grad_add.wgsl"), n_entries * dim)?;
            return Ok(vec![parts.bind(&args, ["grad_y", "index"], ["parts"])?, add.bind(&args, ["parts"], ["grad_weight"])?]);
        }
        let heads = module!("embedding_grad_heads.wgsl", "embedding_entry.wgsl");
        let heads = Dispatch::new("kernels.embedding_grad", heads, [1, 1, 1]).params(self.params());
        let next = over(module!("embedding_grad_next.wgsl", "embedding_entry.wgsl"), n)?;
        let chain = over(module!("embedding_grad_chain.wgsl"), n_entries * dim)?;
        Ok(vec![
            heads.bind(&args, ["index"], [Binding::of("heads").elements("atomic<u32>")])?,
            next.bind(&args, ["index"], ["next"])?,
            chain.bind(&args, ["grad_y", "heads", "next"], ["grad_weight"])?,
        ])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        embedding_cpu::grad(self, args.read("grad_y"), args.read("index"), args.write("grad_weight"));
    }

    fn cost(&self) -> Cost {
        let Embedding { n, n_entries, dim, .. } = self.forward;
        Cost { flops: (n * dim) as u64, bytes: (4 * n * dim + 4 * n + 4 * n_entries * dim) as u64 }
    }
}
