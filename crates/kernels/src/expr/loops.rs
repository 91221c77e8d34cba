//! The loops of the CPU evaluation: one for each function and combination of operands that pays, for each vector width.

use std::marker::PhantomData;

use pulp::{Simd, WithSimd};

use super::binary::Binary;
use super::operand::Operand;
use super::vector;
use crate::vectorised::inlined;

pub(super) fn run_copy(a: Operand<'_>, y: &mut [f32]) {
    match a {
        Operand::Slice(values) => y.copy_from_slice(values),
        Operand::Splat(value) => y.fill(value),
    }
}

#[inline(always)]
pub(super) fn run_binary<S: Simd>(simd: S, kind: Binary, a: Operand<'_>, b: Operand<'_>, y: &mut [f32]) {
    match kind {
        Binary::Add => binary::<S, Add>(simd, a, b, y),
        Binary::Sub => binary::<S, Sub>(simd, a, b, y),
        Binary::Mul => binary::<S, Mul>(simd, a, b, y),
        Binary::Div => binary::<S, Div>(simd, a, b, y),
        Binary::Max => binary::<S, Max>(simd, a, b, y),
        Binary::Min => binary::<S, Min>(simd, a, b, y),
        Binary::Pow => {
            for (i, y) in y.iter_mut().enumerate() {
                *y = vector::pow(a.at(i), b.at(i));
            }
        }
        Binary::Lt | Binary::Le | Binary::Eq | Binary::Ne => unreachable!("a tape has comparisons as choices"),
    }
}

/// Where the comparison of the first two is true, the third, else the fourth.
#[inline(always)]
pub(super) fn run_choose<S: Simd>(simd: S, kind: Binary, [a, b, c, d]: [Operand<'_>; 4], y: &mut [f32]) {
    match kind {
        Binary::Lt => choose::<S, IfLess>(simd, [a, b, c, d], y),
        Binary::Le => choose::<S, IfLessOrEqual>(simd, [a, b, c, d], y),
        _ => choose::<S, IfEqual>(simd, [a, b, c, d], y),
    }
}

/// Replaces the results of arguments that [`vector::sin`] and [`vector::cos`] do not reduce.
pub(super) fn replace_large(a: Operand<'_>, y: &mut [f32], f: fn(f32) -> f32) {
    for (i, y) in y.iter_mut().enumerate() {
        let x = a.at(i);
        if x.abs() > vector::SIN_LIMIT {
            *y = f(x);
        }
    }
}

/// A function of vectors; argument `k` is `x(k)`.
pub(super) trait Function {
    fn call<S: Simd>(simd: S, x: impl Fn(usize) -> S::f32s) -> S::f32s;
}

macro_rules! functions {
    ($($name:ident = |$simd:ident, $x:ident| $body:expr;)*) => {$(
        pub(super) struct $name;

        impl Function for $name {
            #[inline(always)]
            fn call<S: Simd>($simd: S, $x: impl Fn(usize) -> S::f32s) -> S::f32s {
                $body
            }
        }
    )*};
}

functions! {
    GeluSlope = |simd, x| vector::gelu_slope(simd, x(0));
    Add = |simd, x| simd.add_f32s(x(0), x(1));
    Sub = |simd, x| simd.sub_f32s(x(0), x(1));
    Mul = |simd, x| simd.mul_f32s(x(0), x(1));
    Div = |simd, x| simd.div_f32s(x(0), x(1));
    Max = |simd, x| vector::max(simd, x(0), x(1));
    Min = |simd, x| vector::min(simd, x(0), x(1));
    IfLess = |simd, x| simd.select_f32s(simd.less_than_f32s(x(0), x(1)), x(2), x(3));
    IfLessOrEqual = |simd, x| simd.select_f32s(simd.less_than_or_equal_f32s(x(0), x(1)), x(2), x(3));
    IfEqual = |simd, x| simd.select_f32s(simd.equal_f32s(x(0), x(1)), x(2), x(3));
}

#[inline(always)]
pub(super) fn unary<S: Simd, F: Function>(simd: S, a: Operand<'_>, y: &mut [f32]) {
    match a {
        Operand::Slice(_) => Loop::<F, 1, 0b0>::run(simd, [a], y),
        Operand::Splat(a) => fill_with(y, |y| Loop::<F, 1, 0b0>::run(simd, [Operand::Slice(&[a])], y)),
    }
}

#[inline(always)]
fn binary<S: Simd, F: Function>(simd: S, a: Operand<'_>, b: Operand<'_>, y: &mut [f32]) {
    match (a, b) {
        (Operand::Slice(_), Operand::Slice(_)) => Loop::<F, 2, 0b00>::run(simd, [a, b], y),
        (Operand::Splat(_), Operand::Slice(_)) => Loop::<F, 2, 0b01>::run(simd, [a, b], y),
        (Operand::Slice(_), Operand::Splat(_)) => Loop::<F, 2, 0b10>::run(simd, [a, b], y),
        (Operand::Splat(a), Operand::Splat(_)) => fill_with(y, |y| Loop::<F, 2, 0b10>::run(simd, [Operand::Slice(&[a]), b], y)),
    }
}

#[inline(always)]
fn choose<S: Simd, F: Function>(simd: S, x: [Operand<'_>; 4], y: &mut [f32]) {
    match x {
        // ReLU.
        [Operand::Slice(_), Operand::Splat(_), Operand::Splat(_), Operand::Slice(_)] => Loop::<F, 4, 0b0110>::run(simd, x, y),
        // A loop for each of the sixteen combinations would not be much faster, but would take seconds to compile.
        _ => Loop::<F, 4, ANY>::run(simd, x, y),
    }
}

/// Fills `y` with the value that `run` writes into its first element.
#[inline(always)]
fn fill_with(y: &mut [f32], run: impl FnOnce(&mut [f32])) {
    if let Some((first, rest)) = y.split_first_mut() {
        run(std::slice::from_mut(first));
        rest.fill(*first);
    }
}

/// Replaces the bits that say which operands of a [`Loop`] are a single value: this is then determined at run time.
const ANY: u32 = u32::MAX;

/// `y[i] = F(x[0][i], …)`. The bits of `SPLAT` say which operands are a single value, which then stays in a register. If it is
/// [`ANY`], such a value is read repeatedly, as a slice of one vector.
struct Loop<'a, F, const N: usize, const SPLAT: u32> {
    /// Empty for operands that are a single value.
    x: [&'a [f32]; N],
    values: [f32; N],
    y: &'a mut [f32],
    function: PhantomData<F>,
}

impl<'a, F: Function, const N: usize, const SPLAT: u32> Loop<'a, F, N, SPLAT> {
    #[inline(always)]
    fn run<S: Simd>(simd: S, operands: [Operand<'a>; N], y: &'a mut [f32]) {
        let (x, values) = slices_and_values(operands, y.len());
        // A separate function, rather than one for all loops together.
        simd.vectorize(Self { x, values, y, function: PhantomData });
    }
}

/// Compiled once for all functions of `N` operands.
fn slices_and_values<const N: usize>(operands: [Operand<'_>; N], n: usize) -> ([&[f32]; N], [f32; N]) {
    let (mut x, mut values): ([&[f32]; N], _) = ([&[]; N], [0.0; N]);
    for (k, operand) in operands.into_iter().enumerate() {
        match operand {
            Operand::Slice(slice) => x[k] = &slice[..n],
            Operand::Splat(value) => values[k] = value,
        }
    }
    (x, values)
}

impl<F: Function, const N: usize, const SPLAT: u32> WithSimd for Loop<'_, F, N, SPLAT> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, values, y, .. } = self;
        let (y_vectors, y_rest) = S::as_mut_simd_f32s(y);
        let n_vectors = y_vectors.len();
        let splats = values.map(|value| simd.splat_f32s(value));
        let mut vectors: [&[S::f32s]; N] = [&[]; N];
        // The mask for the index of a vector.
        let mut masks = [usize::MAX; N];
        let mut rest = splats;
        for k in 0..N {
            let is_splat = if SPLAT == ANY { x[k].is_empty() } else { SPLAT >> k & 1 == 1 };
            if is_splat {
                (vectors[k], masks[k]) = (std::slice::from_ref(&splats[k]), 0);
            } else {
                let (of_x, rest_of_x) = S::as_simd_f32s(x[k]);
                vectors[k] = &of_x[..n_vectors];
                rest[k] = simd.partial_load_f32s(rest_of_x);
            }
        }
        for (i, y) in y_vectors.iter_mut().enumerate() {
            *y = F::call(
                simd,
                inlined!(|k| match SPLAT {
                    ANY => vectors[k][i & masks[k]],
                    _ if SPLAT >> k & 1 == 1 => splats[k],
                    _ => vectors[k][i],
                }),
            );
        }
        if !y_rest.is_empty() {
            let value = F::call(simd, inlined!(|k| rest[k]));
            simd.partial_store_f32s(y_rest, value);
        }
    }
}
