use super::newton_schulz_cpu;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, Cost, DType, Dispatch, Error, Kernel, TwinArgs, fold_workgroups};

/// The factor of a quintic Newton–Schulz step: `y = a I + b A + c A²` for each symmetric matrix `A` of a batch, given its square.
///
/// Of a matrix `X` with the Gram matrix `A = X Xᵀ`, the step is `X ← y X`; with `A = Xᵀ X` it is `X ← X y`, the same numbers, so that the smaller
/// of the two serves and nothing is transposed. Each takes the singular values `s` of `X` to `a s + b s³ + c s⁵`, and leaves the singular vectors.
///
/// # Shapes
/// `gram`, `square`, `y`: `[n_batch, n, n]`.
/// # Dtypes
/// f32.
/// # Reference
/// Jordan et al. 2024, *Muon: An optimizer for hidden layers in neural networks*.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewtonSchulzFactor {
    /// Matrices.
    pub n_batch: usize,
    /// Rows and columns of each.
    pub n: usize,
    /// `a`, `b` and `c`.
    pub coefficients: [f32; 3],
}

impl Kernel for NewtonSchulzFactor {
    fn name(&self) -> &'static str {
        "newton_schulz_factor"
    }

    fn args(&self) -> Vec<Arg> {
        let len = self.n_batch * self.n * self.n;
        vec![Arg::read("gram", DType::F32, len), Arg::read("square", DType::F32, len), Arg::write("y", DType::F32, len)]
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n_batch", self.n_batch), ("n", self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let [a, b, c] = self.coefficients.map(f32::to_bits);
        Ok(vec![Dispatch {
            label: "kernels.newton_schulz_factor",
            wgsl: module!("newton_schulz.wgsl"),
            entry: "main",
            constants: vec![],
            params: bytemuck::cast_slice(&[a, b, c, self.n as u32]).to_vec(),
            reads: vec![0, 1],
            writes: vec![2],
            workgroups: fold_workgroups(self.name(), (self.n_batch * self.n * self.n).div_ceil(64))?,
        }])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        newton_schulz_cpu::factor(self, args.read(0), args.read(1), args.write(2));
    }

    fn cost(&self) -> Cost {
        let len = (self.n_batch * self.n * self.n) as u64;
        Cost { flops: 3 * len, bytes: 12 * len }
    }
}
