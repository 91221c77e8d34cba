//! Which dispatches a matrix product is on an adapter.

use super::epilogue::Results;
use super::modules;
use super::sliced_product::{SlicedProduct, Slices, run_places};
use super::tiles::{Cut, product_workgroups};
use crate::core::stored_types::Template;
use crate::{Adapter, DType, Dispatch, Error, MAX_WORKGROUPS, Matmul, MatmulFamily, fold_workgroups};

/// The most columns for which invocations go along the rows alone.
pub(crate) const NARROW_COLS: usize = 8;

/// The most rows, or indices of the sum, of a thin product.
const THIN: usize = 16;

/// A form of the product, and the rows and columns that one of its workgroups computes.
struct Form {
    label: &'static str,
    template: Template,
    results: Results,
    n_rows: usize,
    n_cols: usize,
}

const PLAIN: Form = Form { label: "kernels.matmul", template: modules::MATMUL, results: Results::Two, n_rows: 8, n_cols: 16 };
const NARROW: Form =
    Form { label: "kernels.matmul.narrow", template: modules::MATMUL_NARROW, results: Results::Two, n_rows: 64, n_cols: 1 };
const NARROW_VECTORS: Form = Form {
    label: "kernels.matmul.narrow_vectors",
    template: modules::MATMUL_NARROW_VECTORS,
    results: Results::Two,
    n_rows: 64,
    n_cols: 1,
};
const DIRECT: Form =
    Form { label: "kernels.matmul.direct", template: modules::MATMUL_DIRECT, results: Results::Four, n_rows: 16, n_cols: 128 };
const TILED_ANY: Form = Form {
    label: "kernels.matmul.tiled_any",
    template: modules::MATMUL_TILED_ANY,
    results: Results::Two,
    n_rows: 64,
    n_cols: 64,
};

impl Form {
    /// Groups of a result of `m` by `n`. Narrow ones, whose invocations have two results each, are counted by those alone.
    fn workgroups(&self, m: usize, n: usize) -> Result<[u32; 3], Error> {
        if self.n_cols == 1 {
            return fold_workgroups("matmul", m.saturating_mul(n).div_ceil(2 * self.n_rows));
        }
        let (n_row_groups, n_col_groups) = (m.div_ceil(self.n_rows), n.div_ceil(self.n_cols));
        if n_col_groups > MAX_WORKGROUPS as usize {
            return Err(Error::Size { kernel: "matmul", size: "n", found: n, expected: "at most 65535 column blocks" });
        }
        let z = n_row_groups.div_ceil(MAX_WORKGROUPS as usize);
        Ok([n_col_groups as u32, n_row_groups.div_ceil(z) as u32, z as u32])
    }
}

impl Matmul {
    /// Whether all modules of vectors can compute it.
    pub(crate) const fn is_of_vectors(&self) -> bool {
        let Self { m, n, k, transpose, .. } = *self;
        n.is_multiple_of(4) && k.is_multiple_of(4) && (!transpose.a() || m.is_multiple_of(4))
    }

    /// Whether it has few rows or few indices of the sum, and b and the result are read and written by vectors, but a is not.
    pub(crate) const fn is_thin(&self) -> bool {
        self.n.is_multiple_of(4) && !self.reads_vectors() && (self.m <= THIN || self.k <= THIN)
    }

    /// Whether its result can be stored in 16 bits: where no word of it is written by two invocations.
    pub(crate) const fn stores_halves(&self) -> bool {
        self.m == 1 || self.n.is_multiple_of(2) || self.n <= NARROW_COLS
    }
}

/// The form of a family that computes this shape.
fn form(matmul: &Matmul, family: MatmulFamily, dtypes: &[DType]) -> &'static Form {
    let Matmul { n, k, transpose, .. } = *matmul;
    let y_is_half = dtypes.last().is_some_and(|dtype| dtype.is_half());
    // In the others an invocation has neighbours of one row: a word with the end of a row and the start of the next would belong to none.
    let narrow = n <= NARROW_COLS && (family == MatmulFamily::Direct || y_is_half && !n.is_multiple_of(2));
    // One column is stored the same either way.
    let along_k = k.is_multiple_of(4) && !transpose.a() && (transpose.b() || n == 1);
    match family {
        _ if narrow && along_k => &NARROW_VECTORS,
        _ if narrow => &NARROW,
        MatmulFamily::Tiled | MatmulFamily::TiledBy(_) | MatmulFamily::Coop => &TILED_ANY,
        MatmulFamily::Direct if matmul.is_of_vectors() => &DIRECT,
        MatmulFamily::Direct => &PLAIN,
    }
}

/// The dispatches of `matmul` by tiles of vectors or on tensor cores, if the family has them for it: the product, or those of all runs and their sum.
fn sliced(
    matmul: &Matmul,
    y_arg: usize,
    family: MatmulFamily,
    adapter: &Adapter,
    dtypes: &[DType],
) -> Option<Result<Vec<Dispatch>, Error>> {
    let n_runs = matmul.n_runs();
    let operands = [0, 1].map(|arg| dtypes.get(arg).copied().unwrap_or(DType::F32));
    let tiles =
        family.tiles(adapter, Cut::of(adapter, operands), [matmul.m, matmul.n], n_runs).filter(|_| matmul.reads_vectors())?;
    let parts = y_arg + 1 + usize::from(matmul.transpose.b());
    let (slices, write) = if n_runs == 1 { (Slices::Pairs(1), y_arg) } else { (Slices::Runs(n_runs), parts) };
    // A binding that is not used has to be filled too.
    let reads = [0, 1, if y_arg == 3 { 2 } else { 1 }];
    let product = SlicedProduct { kernel: "matmul", matmul, slices, reads, write, dtypes };
    let mut dispatches = vec![product.dispatch(family, adapter, tiles)];
    if n_runs > 1 {
        dispatches.push(matmul.sum_of_runs(parts, y_arg));
    }
    Some(dispatches.into_iter().collect())
}

/// The dispatches of a product whose b and result are vectors and whose a is not, if `family` leaves it to that: the product, or those of all runs
/// and their sum.
fn thin(
    matmul: &Matmul,
    y_arg: usize,
    family: MatmulFamily,
    adapter: &Adapter,
    dtypes: &[DType],
) -> Option<Result<Vec<Dispatch>, Error>> {
    let has_vectors = matmul.n.is_multiple_of(4) && !matmul.is_of_vectors();
    let is_wanted = match family {
        MatmulFamily::Tiled | MatmulFamily::TiledBy(_) | MatmulFamily::Coop => matmul.is_thin(),
        MatmulFamily::Direct => has_vectors && matmul.n > NARROW_COLS,
    };
    is_wanted.then(|| {
        let Matmul { n, k, transpose, .. } = *matmul;
        let b_turned = y_arg + 1;
        let mut dispatches = Vec::with_capacity(3);
        if transpose.b() {
            dispatches.push(turn(n, k, b_turned, adapter, dtypes.get(1).copied().unwrap_or(DType::F32))?);
        }
        let b = if transpose.b() { b_turned } else { 1 };
        let n_runs = matmul.n_runs();
        let parts = b_turned + usize::from(transpose.b());
        dispatches.push(thin_product(matmul, [b, y_arg, if n_runs == 1 { y_arg } else { parts }], n_runs, adapter, dtypes)?);
        if n_runs > 1 {
            dispatches.push(matmul.sum_of_runs(parts, y_arg)?);
        }
        Ok(dispatches)
    })
}

/// The product by `matmul_thin.wgsl`: of argument 0 with argument `b` into argument `write`, which is `y_arg` unless there are several runs.
fn thin_product(
    matmul: &Matmul,
    [b, y_arg, write]: [usize; 3],
    n_runs: usize,
    adapter: &Adapter,
    dtypes: &[DType],
) -> Result<Dispatch, Error> {
    let Matmul { m, n, k, transpose, .. } = *matmul;
    let n_rows = if m == 1 { 1 } else { 4 };
    let n_lanes = (n / 4).next_power_of_two().clamp(8, 64);
    let n_row_groups = m.div_ceil(n_rows);
    let dtype = |arg: usize| dtypes.get(arg).copied().unwrap_or(DType::F32);
    // A binding that is not used has to be filled too.
    let fused = if y_arg == 3 { 2 } else { b };
    let constants = vec![("TRANSPOSE_A", f64::from(u8::from(transpose.a()))), ("ROWS", n_rows as f64), ("WG", n_lanes as f64)];
    let slice_k = if n_runs == 1 { k } else { run_places(k, n_runs) };
    let params = [m, n, k, slice_k, n_runs, n_row_groups, 0, 0].map(|size| size as u32);
    let types = [("A", 0), ("B", b), ("FUSED", fused), ("Y", write)].map(|(group, arg)| (group, dtype(arg)));
    Ok(Dispatch {
        label: "kernels.matmul.thin",
        wgsl: modules::MATMUL_THIN.module_on(adapter, &types).with_all(matmul.epilogue.parts(Results::Four)),
        entry: "main",
        constants,
        params: bytemuck::cast_slice(&params).to_vec(),
        reads: vec![0, b, fused],
        writes: vec![write],
        workgroups: product_workgroups("matmul", n, (n / 4).div_ceil(n_lanes), n_row_groups.saturating_mul(n_runs))?,
    })
}

/// The dispatches of `matmul`, whose result is argument `y_arg` and whose arguments are stored as `dtypes` says; none are f32.
pub(crate) fn dispatches(
    matmul: &Matmul,
    y_arg: usize,
    family: MatmulFamily,
    adapter: &Adapter,
    dtypes: &[DType],
) -> Result<Vec<Dispatch>, Error> {
    let by_vectors = sliced(matmul, y_arg, family, adapter, dtypes).or_else(|| thin(matmul, y_arg, family, adapter, dtypes));
    if let Some(dispatches) = by_vectors {
        return dispatches;
    }
    let dtype = |arg: usize| dtypes.get(arg).copied().unwrap_or(DType::F32);
    let Matmul { m, n, k, transpose, .. } = *matmul;
    let form = form(matmul, family, dtypes);
    let b_turned = y_arg + 1;
    let is_turned = transpose.b() && form.label != NARROW_VECTORS.label;
    let mut dispatches = Vec::with_capacity(2);
    if is_turned {
        dispatches.push(turn(n, k, b_turned, adapter, dtype(1))?);
    }
    let b = if is_turned { b_turned } else { 1 };
    // A binding that is not used has to be filled too.
    let fused = if y_arg == 3 { 2 } else { b };
    let mut constants = Vec::new();
    if transpose.a() {
        constants.push(("TRANSPOSE_A", 1.0));
    }
    let types = [("A", 0), ("B", b), ("FUSED", fused), ("Y", y_arg)].map(|(group, arg)| (group, dtype(arg)));
    dispatches.push(Dispatch {
        label: form.label,
        wgsl: form.template.module_on(adapter, &types).with_all(matmul.epilogue.parts(form.results)),
        entry: "main",
        constants,
        params: bytemuck::cast_slice(&[m as u32, n as u32, k as u32, 0]).to_vec(),
        reads: vec![0, b, fused],
        writes: vec![y_arg],
        workgroups: form.workgroups(m, n)?,
    });
    Ok(dispatches)
}

/// A transposed copy of b, argument 1, in argument `b_turned`.
fn turn(n: usize, k: usize, b_turned: usize, adapter: &Adapter, dtype: DType) -> Result<Dispatch, Error> {
    let (template, n_lanes) = transposition(n, k, dtype);
    Ok(Dispatch {
        label: "kernels.matmul.transpose",
        wgsl: template.module_on(adapter, &[("X", dtype)]),
        entry: "main",
        constants: vec![],
        params: bytemuck::cast_slice(&[n as u32, k as u32, 0, 0]).to_vec(),
        reads: vec![1],
        writes: vec![b_turned],
        workgroups: fold_workgroups("matmul", n_lanes.div_ceil(64))?,
    })
}

/// The module that transposes an operand of `n` rows and `k` columns, and how many invocations that takes.
pub(crate) fn transposition(n: usize, k: usize, dtype: DType) -> (Template, usize) {
    if dtype.is_half() && n.is_multiple_of(4) && k.is_multiple_of(4) {
        (modules::MATMUL_TRANSPOSE_BLOCKS, n * k / 16)
    } else {
        (modules::MATMUL_TRANSPOSE, n * k)
    }
}
