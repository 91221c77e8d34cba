use super::reduce_cpu;
use crate::core::module::part;
use crate::core::sizes::check_sizes;
use crate::core::stored_form::{StoredForm, sharing, with_element};
use crate::core::stored_types::{Group, Template};
use crate::{Adapter, Arg, Cost, DType, Dispatch, Error, Kernel, TwinArgs, fold_workgroups};

const REDUCE: Template = Template::new(&[part!("reduce.wgsl"), part!("../core/nan.wgsl")], &[Group::one("X").loads()]);

/// Reduces the middle of three dimensions: `y[o, i] = op over k of x[o, k, i]`.
///
/// Rows are reduced with `n_inner` 1, columns with `n_outer` 1, everything with both.
///
/// # Shapes
/// `x`: `[n_outer, n, n_inner]`, row-major; `y`: `[n_outer, n_inner]`.
/// # Dtypes
/// f32; `x` in f16 and bf16 by [`stored`](crate::stored). Sums are taken in several passes over runs of about 64 elements, so that rounding grows slowly, and always in one order.
/// # Cost
/// Reads `x` once; two further passes for a million elements in one result.
/// # Reference
/// `torch.{sum, mean, amax, amin}`, `torch.linalg.vector_norm`; a NaN reaches every result but those of [`ReduceOp::NonFinite`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reduce {
    /// How many runs there are.
    pub n_outer: usize,
    /// Elements that make one result.
    pub n: usize,
    /// Results side by side.
    pub n_inner: usize,
    /// What is taken of them.
    pub op: ReduceOp,
}

/// What a [`Reduce`] takes of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// `Σ x`.
    Sum,
    /// `Σ x / n`.
    Mean,
    /// The greatest.
    Max,
    /// The least.
    Min,
    /// `√Σ x²`, the Euclidean norm.
    Norm,
    /// 1 if an element is infinite or NaN, else 0. Told by the bits of the exponent, since a
    /// shader's comparisons may take for granted that there is no NaN.
    NonFinite,
}

impl ReduceOp {
    const fn code(self) -> u32 {
        match self {
            Self::Sum => 0,
            Self::Mean => 1,
            Self::Max => 2,
            Self::Min => 3,
            Self::Norm => 4,
            Self::NonFinite => 5,
        }
    }
}

/// Elements that one invocation takes in a row.
const RUN: usize = 64;
/// Into how many runs the elements of a result are at least cut, so that neighbouring invocations read neighbouring elements.
const MIN_RUNS: usize = 16;
/// So few partial results are taken by one invocation, to save a pass.
const LAST_RUN: usize = 512;

/// Into how many partial results each pass makes `n` elements; the last is 1.
pub(crate) fn passes(n: usize) -> Vec<usize> {
    let mut passes = vec![if n <= RUN { 1 } else { n.div_ceil(RUN).max(MIN_RUNS) }];
    while let Some(&n_parts) = passes.last()
        && n_parts > 1
    {
        passes.push(if n_parts <= LAST_RUN { 1 } else { n_parts.div_ceil(RUN) });
    }
    passes
}

impl Reduce {
    /// The reduction of all of `n` elements.
    pub const fn all(n: usize, op: ReduceOp) -> Self {
        Self { n_outer: 1, n, n_inner: 1, op }
    }
}

impl Kernel for Reduce {
    fn name(&self) -> &'static str {
        match self.op {
            ReduceOp::Sum => "sum",
            ReduceOp::Mean => "mean",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
            ReduceOp::Norm => "norm",
            ReduceOp::NonFinite => "non_finite",
        }
    }

    fn args(&self) -> Vec<Arg> {
        let n_results = self.n_outer * self.n_inner;
        let passes = passes(self.n);
        let parts = passes[..passes.len() - 1].iter().map(|n_parts| Arg::scratch("parts", DType::F32, n_parts * n_results));
        [Arg::read("x", DType::F32, n_results * self.n), Arg::write("y", DType::F32, n_results)]
            .into_iter()
            .chain(parts)
            .collect()
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n_outer", self.n_outer), ("n", self.n), ("n_inner", self.n_inner)])
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.stored_dispatches(&[DType::F32], adapter)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.stored_twin(&[DType::F32], args);
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        self.stored_form(dtypes)
    }

    fn cost(&self) -> Cost {
        let n_results = (self.n_outer * self.n_inner) as u64;
        Cost { flops: n_results * self.n as u64, bytes: 4 * n_results * (self.n as u64 + 1) }
    }
}

impl StoredForm for Reduce {
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        sharing(self, &[0], dtypes)
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let passes = passes(self.n);
        let mut n = self.n;
        let mut dispatches = Vec::with_capacity(passes.len());
        for (pass, &n_parts) in passes.iter().enumerate() {
            let (first, last) = (pass == 0, pass + 1 == passes.len());
            let width = n_parts * self.n_inner;
            let sizes = [(self.n_outer * width) as u32, (n * self.n_inner) as u32, width as u32, self.n as u32];
            let flag = |is: bool| f64::from(u8::from(is));
            dispatches.push(Dispatch {
                label: "kernels.reduce",
                wgsl: REDUCE.module(&[("X", if first { dtypes[0] } else { DType::F32 })]),
                entry: "main",
                constants: vec![("OP", f64::from(self.op.code())), ("FIRST", flag(first)), ("LAST", flag(last))],
                params: bytemuck::cast_slice(&sizes).to_vec(),
                reads: vec![if first { 0 } else { pass + 1 }],
                writes: vec![if last { 1 } else { pass + 2 }],
                workgroups: fold_workgroups(self.name(), (self.n_outer * width).div_ceil(64))?,
            });
            n = n_parts;
        }
        Ok(dispatches)
    }

    fn stored_twin(&self, dtypes: &[DType], args: &mut TwinArgs<'_>) {
        let y = args.write(1);
        let parts = (2..self.args().len()).map(|i| args.write(i)).collect();
        with_element!(dtypes[0], T => reduce_cpu::run::<T>(self, args.read(0), y, parts));
    }
}
