//! Elementwise arithmetic as a value.
//!
//! An [`Expr`] is an expression over numbered inputs and `f32` constants. It can be used in three ways: as WGSL text for `f32` or
//! `vec4f` ([`wgsl`]), in a vectorised evaluation on the CPU ([`Evaluator`]), and for a symbolic derivative
//! ([`Expr::derivative`]). [`Map`](crate::Map) is the kernel that computes one for every element of its arguments; substituting
//! one expression into another ([`Expr::substitute`]) fuses two of them.
//!
//! # Values
//! Operations are those of IEEE 754 `f32`, each rounded separately: nothing is contracted or reordered, so that fused results are
//! bit-identical on the CPU. NaN and infinities propagate as in PyTorch: `max`, `min`, `clamp` and `relu` of NaN are NaN,
//! comparisons with it are false, and `sign` of it is 0.
//!
//! | function | error on the CPU | error in WGSL |
//! | --- | --- | --- |
//! | `+ - *`, `/`, `recip`, `sqrt`, `floor`, `abs`, `sign`, `min`, `max`, `is_finite` | none beyond rounding | `/`, `recip`, `sqrt` 2.5 ulp |
//! | `rsqrt` | 1.5 ulp | 5 ulp |
//! | `exp`, `log` | 1 ulp | 4 ulp |
//! | `expm1`, `log1p`, `erf` | 2 ulp | 6 ulp |
//! | `tanh`, `sigmoid` | 2.5 ulp | 6 ulp |
//! | `sin`, `cos` | 2 ulp | 2⁻²² absolute up to 12 000, not stated beyond |
//! | `powf` | 1 ulp | `4 + abs(y log x)` ulp |
//!
//! Subnormal numbers are kept on the CPU. A GPU may flush them to zero, as WGSL allows.
//!
//! # Simplification
//! Operators simplify while they build, but only if the bits of a finite result stay the same (a NaN may change its sign and
//! payload): constants are folded; equal subexpressions become one; `x·1`, `x/1`, `x-0` and `x+(-0)` become `x` (not `x+0`, which
//! turns -0 into 0, nor `x·0`, which is NaN for an infinite `x`); division by a power of two becomes multiplication; double
//! negation is dropped.

mod activation;
mod binary;
mod builder;
mod chains;
mod derivative;
mod display;
mod evaluate;
mod hoist;
mod instruction;
mod loops;
mod op;
mod operand;
mod operators;
mod tape;
mod unary;
mod vector;
pub mod wgsl;

pub use activation::Activation;
pub use evaluate::Evaluator;
pub use op::Expr;
pub use operand::Operand;

pub(crate) use evaluate::{SHORT_BLOCK_LEN, Scratch, apply, exp_of_differences, scale_by_gelu_slope};
pub(crate) use hoist::hoist;
pub(crate) use operand::BLOCK_LEN;
pub(crate) use unary::Unary;

use binary::Binary;
use builder::Builder;
use op::Op;

impl Expr {
    /// Input number `index`, from 0.
    ///
    /// # Panics
    /// If `index` does not fit 32 bits.
    pub fn input(index: usize) -> Self {
        let index = u32::try_from(index).expect("an expression has fewer than 2^32 inputs");
        Self { ops: [Op::Input(index)].into() }
    }

    /// A constant: the same number for every element.
    pub fn constant(value: f32) -> Self {
        Self { ops: [Op::constant(value)].into() }
    }

    /// One more than the highest input that it reads; 0 if it reads none.
    pub fn n_inputs(&self) -> usize {
        self.read_inputs().max().map_or(0, |i| i + 1)
    }

    /// Whether it reads input `index`.
    pub fn reads(&self, index: usize) -> bool {
        self.read_inputs().any(|i| i == index)
    }

    fn read_inputs(&self) -> impl Iterator<Item = usize> {
        self.ops.iter().filter_map(|op| match op {
            Op::Input(i) => Some(*i as usize),
            _ => None,
        })
    }

    /// The number of operations per element, not counting inputs and constants.
    pub fn n_ops(&self) -> usize {
        self.ops.iter().filter(|op| !matches!(op, Op::Input(_) | Op::Constant(_))).count()
    }

    /// The constants that it uses.
    pub(crate) fn constants(&self) -> impl Iterator<Item = f32> {
        self.ops.iter().filter_map(|op| op.as_constant())
    }

    /// Its value, if it is a constant.
    pub fn as_constant(&self) -> Option<f32> {
        self.ops.last().and_then(|op| op.as_constant())
    }

    /// The same expression with `inputs[i]` in place of input `i`, simplified: the fusion of the kernels that would compute them
    /// one after the other.
    ///
    /// # Panics
    /// If `inputs` has fewer than [`n_inputs`](Self::n_inputs) elements.
    ///
    /// # Examples
    /// ```
    /// use brisk_kernels::expr::Expr;
    ///
    /// let (x, y) = (Expr::input(0), Expr::input(1));
    /// let sum_then_exp = x.exp().substitute(&[&x + &y]);
    /// assert_eq!(sum_then_exp, (&x + &y).exp());
    /// ```
    pub fn substitute(&self, inputs: &[Self]) -> Self {
        let n_inputs = self.n_inputs();
        assert!(inputs.len() >= n_inputs, "got {} expressions, expected one for each of {n_inputs} inputs", inputs.len());
        let mut builder = Builder::default();
        let ids: Vec<_> = inputs.iter().map(|input| builder.import(input)).collect();
        let result = builder.import_with(self, &ids);
        builder.finish(result)
    }

    /// Its value for one element, bit-identical to that of [`Evaluator`].
    ///
    /// # Panics
    /// If `inputs` has fewer than [`n_inputs`](Self::n_inputs) elements.
    pub fn evaluate(&self, inputs: &[f32]) -> f32 {
        let constants: Vec<_> = inputs.iter().map(|&input| Self::constant(input)).collect();
        self.substitute(&constants).as_constant().expect("without inputs every operation folds")
    }

    fn unary(&self, kind: Unary) -> Self {
        let mut builder = Builder::default();
        let a = builder.import(self);
        let result = builder.unary(kind, a);
        builder.finish(result)
    }

    fn binary(&self, kind: Binary, other: &Self) -> Self {
        let mut builder = Builder::default();
        let (a, b) = (builder.import(self), builder.import(other));
        let result = builder.binary(kind, a, b);
        builder.finish(result)
    }
}
