use super::newton_schulz_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::module;

/// The factor of a quintic Newton–Schulz step: `y = a I + b A + c A²` for each symmetric matrix `A` of a batch, given its square.
///
/// It is not a [`Map`](crate::Map), since the identity is not among its inputs. For a matrix `X` with the Gram matrix `A = X Xᵀ`,
/// the step is `X ← y X`; with `A = Xᵀ X` it is `X ← X y`, with the same result, so that the smaller of the two can be used and
/// nothing is transposed. Each step maps the singular values `s` of `X` to `a s + b s³ + c s⁵`, and keeps the singular vectors.
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
    /// The number of rows and columns of each.
    pub n: usize,
    /// `a`, `b` and `c`.
    pub coefficients: [f32; 3],
}

impl NewtonSchulzFactor {
    /// Elements of all matrices.
    const fn len(&self) -> usize {
        self.n_batch.saturating_mul(self.n).saturating_mul(self.n)
    }
}

impl Kernel for NewtonSchulzFactor {
    fn signature(&self) -> Signature {
        let len = self.len();
        let args = [Arg::read("gram", DType::F32, len), Arg::read("square", DType::F32, len), Arg::write("y", DType::F32, len)];
        Signature::new("newton_schulz_factor", args).sizes([("n_batch", self.n_batch), ("n", self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let [a, b, c] = self.coefficients;
        let module = module!("newton_schulz.wgsl");
        let dispatch = Dispatch::elementwise(self.name(), "kernels.newton_schulz_factor", module, self.len())?
            .params([("a", a), ("b", b), ("c", c)])
            .param("n", self.n);
        Ok(vec![dispatch.bind(&self.args(), ["gram", "square"], ["y"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        newton_schulz_cpu::factor(self, args.read("gram"), args.read("square"), args.write("y"));
    }

    fn cost(&self) -> Cost {
        let len = self.len() as u64;
        Cost { flops: 3 * len, bytes: 12 * len }
    }
}
