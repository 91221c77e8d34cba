//! The dispatches of matrix products and batches of them.

use super::epilogue::Results;
use super::form::{BATCHED_MATMUL, Form, Kind, Labels, MATMUL, Problem, Reads};
use super::modules;
use super::tile_form::TileForm;
use crate::adapter::adapter::Adapter;
use crate::adapter::matmul_family::MatmulFamily;
use crate::adapter::tiles::Tiles;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::gemm::transpose::Transpose;
use crate::kernel::kernel::Kernel;
use crate::product::cut::product_workgroups;
use crate::product::matmul::Matmul;
use crate::reduce::map_reduce_module::sum_of_parts;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;

/// The minimum number of K indices of a part, which is a multiple of it.
const PART_LEN: usize = 256;
/// The maximum number of parts of K.
const MAX_PARTS: usize = 32;
/// The maximum number of elements of the sums of all parts together.
const PARTS_LEN: usize = 1024 * 1024;
/// The number of tiles of results that fill a GPU without splitting K.
const N_ENOUGH: usize = 128;

impl Matmul {
    /// Whether operands and result can be read and written as vectors: the contiguous dimension of each is a multiple of 4.
    pub(crate) const fn reads_vectors(&self) -> bool {
        let Self { m, n, k, transpose, .. } = *self;
        let k_is_fastest = !matches!(transpose, Transpose::A);
        n.is_multiple_of(4) && (!k_is_fastest || k.is_multiple_of(4)) && (!transpose.a() || m.is_multiple_of(4))
    }

    /// Whether b in its layout, and the result can be accessed as vectors, but not a.
    const fn has_thin(&self) -> bool {
        !self.is_batch() && self.n.is_multiple_of(4) && !self.transpose.b() && !self.reads_vectors()
    }

    /// Whether the result can be stored in 16 bits: if no two invocations write the same word.
    pub(crate) const fn stores_halves(&self) -> bool {
        self.n.is_multiple_of(2) || (!self.is_batch() && (self.m == 1 || self.n <= 8))
    }

    /// The number of parts into which K is split (split-K). It depends only on the shape, and is 1 unless the result has too few
    /// tiles to occupy a GPU, as gradients of weights often do.
    pub(crate) fn n_parts(&self) -> usize {
        let Self { m, n, k, .. } = *self;
        let n_tiles = Tiles::MEDIUM.n_groups(m, n).max(1);
        if self.is_batch() || !self.epilogue.is_none() || !(self.reads_vectors() || self.has_thin()) || n_tiles > N_ENOUGH {
            return 1;
        }
        let of_memory = PARTS_LEN / m.saturating_mul(n).max(1);
        let wanted = (2 * N_ENOUGH / n_tiles).min(k / PART_LEN).min(of_memory).clamp(1, MAX_PARTS);
        k.div_ceil(part_len(k, wanted)).max(1)
    }
}

/// The number of K indices of a part, given the approximate number of parts.
fn part_len(k: usize, n_parts: usize) -> usize {
    k.div_ceil(n_parts).max(1).next_multiple_of(PART_LEN)
}

/// The dispatches of the form that `family` has on `adapter`, over arguments that are stored as `args` says.
pub(super) fn dispatches(
    matmul: &Matmul,
    args: Vec<Arg>,
    family: MatmulFamily,
    adapter: &Adapter,
) -> Result<Vec<Dispatch>, Error> {
    Product { kernel: matmul.name(), matmul, args }.dispatches(family, adapter)
}

/// Products over arguments `a`, `b`, the epilogue's argument, `y`, and `parts` for parts of K.
#[derive(Debug)]
struct Product<'a> {
    kernel: &'static str,
    matmul: &'a Matmul,
    /// The kernel's arguments, as they are stored.
    args: Vec<Arg>,
}

impl Product<'_> {
    /// The product, or the sums of all parts of K and their sum.
    fn dispatches(&self, family: MatmulFamily, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        family.check(self.kernel, adapter)?;
        let n_parts = self.matmul.n_parts();
        let problem = self.problem(n_parts);
        let form = problem.form(family, adapter);
        if n_parts == 1 || matches!(form, Form::Direct(_) | Form::Narrow) {
            return Ok(vec![self.dispatch(&form, problem.reads, 1, adapter)?]);
        }
        Ok(vec![self.dispatch(&form, problem.reads, n_parts, adapter)?, self.sum_of_parts(n_parts)?])
    }

    /// Slices are the pairs of a batch, or the parts of K of one pair.
    fn n_slices(&self, n_parts: usize) -> usize {
        if self.matmul.is_batch() { self.matmul.n_batch } else { n_parts }
    }

    fn problem(&self, n_parts: usize) -> Problem {
        let Matmul { m, n, k, .. } = *self.matmul;
        let splits_words = self.dtype("y").is_half() && !n.is_multiple_of(2);
        Problem {
            size: [m, n],
            depth: k,
            n_slices: self.n_slices(n_parts),
            operands: ["a", "b"].map(|name| self.dtype(name)),
            reads: if self.matmul.reads_vectors() { Reads::Vectors } else { Reads::Elements },
            whole: [m, n, k],
            kind: if self.matmul.is_batch() {
                Kind::Batch
            } else {
                Kind::Matmul { splits_words, has_thin: self.matmul.has_thin() }
            },
        }
    }

    fn dtype(&self, name: &str) -> DType {
        self.args.iter().find(|arg| arg.name == name).map_or(DType::F32, |arg| arg.dtype)
    }

    fn dispatch(&self, form: &Form, reads: Reads, n_parts: usize, adapter: &Adapter) -> Result<Dispatch, Error> {
        let Matmul { m, n, k, transpose, .. } = *self.matmul;
        let epilogue = &self.matmul.epilogue;
        let write = if n_parts == 1 { "y" } else { "parts" };
        let operands = ["a", "b"].map(|name| self.dtype(name));
        let tiles = TileForm::of(form, reads, adapter, operands);

        // A column has the same memory layout as its transpose. Along K, a row of a and a column of b can be read as vectors.
        let b_along_k = transpose.b() || n == 1;
        let by_lines = k.is_multiple_of(4) && !transpose.a() && b_along_k;
        let (template, results) = match (form, reads) {
            (Form::Coop(_), _) => (&modules::MATMUL_COOP, Results::Four),
            (Form::Tiled(_) | Form::Direct(_), Reads::Vectors) => (&modules::MATMUL[reads as usize], Results::Four),
            (Form::Tiled(_) | Form::Direct(_), Reads::Elements) => (&modules::MATMUL[reads as usize], Results::Two),
            (Form::Narrow, _) if by_lines => (&modules::MATMUL_NARROW, Results::Two),
            (Form::Narrow, _) => (&modules::MATMUL_NARROW_ANY, Results::Two),
            (Form::Thin, _) => (&modules::MATMUL_THIN, Results::Four),
        };
        let is_coop = matches!(form, Form::Coop(_));
        let stored = [("A", operands[0]), ("B", operands[1])].into_iter().filter(|_| !is_coop);
        let stored = stored.chain([("Y", self.dtype(write))]).chain(epilogue.stored_operand(&self.args));
        let types: Vec<_> = stored.chain(tiles.types).collect();
        let module = template.module_on(adapter, &types).with_all(form.main_parts(reads)).with_all(epilogue.parts(results));

        let flag = |is: bool| f64::from(u8::from(is));
        let transposed = |b: bool| [("TRANSPOSE_A", flag(transpose.a())), ("TRANSPOSE_B", flag(b))];
        let n_slices = self.n_slices(n_parts);
        let label = self.labels().of(form, reads);
        let dispatch = match form {
            Form::Narrow => Dispatch::elementwise(self.kernel, label, module, m.saturating_mul(n).div_ceil(2))?
                .constants(transposed(b_along_k)),
            Form::Thin => {
                let n_rows = if m == 1 { 1 } else { 4 };
                let n_invocations = (n / 4).next_power_of_two().clamp(8, 64);
                let n_row_groups = m.div_ceil(n_rows).saturating_mul(n_slices);
                let workgroups = product_workgroups(self.kernel, n, (n / 4).div_ceil(n_invocations), n_row_groups)?;
                let sizes = [("ROWS", n_rows as f64), ("WG", n_invocations as f64)];
                Dispatch::new(label, module, workgroups).constants([("TRANSPOSE_A", flag(transpose.a()))]).constants(sizes)
            }
            Form::Coop(_) | Form::Tiled(_) | Form::Direct(_) => {
                let [tile_rows, tile_cols] = form.tile();
                let n_row_groups = m.div_ceil(tile_rows).saturating_mul(n_slices);
                let workgroups = product_workgroups(self.kernel, n, n.div_ceil(tile_cols), n_row_groups)?;
                let split = [("SPLIT", flag(!self.matmul.is_batch()))];
                Dispatch::new(label, module, workgroups)
                    .constants(transposed(transpose.b()))
                    .constants(split)
                    .constants(tiles.constants)
            }
        };
        let sizes = [
            ("m", m),
            ("n", n),
            ("k", k),
            // A multiple of a tile's depth, or K.
            ("slice_k", if n_parts == 1 { k } else { part_len(k, n_parts) }),
            ("n_slices", n_slices),
        ];
        let operand = |name| if is_coop { Binding::of(name).elements("f16") } else { Binding::of(name) };
        let reads = ["a", "b"].map(operand).into_iter().chain(epilogue.bindings());
        let dispatch = dispatch.constants(epilogue.constants()).params(sizes);
        dispatch.bind(&self.args, reads, [Binding::of(write).named("y")])
    }

    const fn labels(&self) -> &'static Labels {
        if self.matmul.is_batch() { &BATCHED_MATMUL } else { &MATMUL }
    }

    /// The sum of the results of all parts of K, in order.
    fn sum_of_parts(&self, n_parts: usize) -> Result<Dispatch, Error> {
        sum_of_parts("kernels.matmul.sum", [n_parts, self.matmul.m * self.matmul.n], &self.args, "y")
    }
}
