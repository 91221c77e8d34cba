use brisk_kernels::expr::Expr;
use brisk_tensor::{Activation, ElementwiseOperation, Error, Tensor};

use crate::bound::Bound;
use crate::init::Init;
use crate::parameters::{ParameterId, ParametersBuilder};

/// A fully connected layer of each member of an ensemble, whose members share the weight: `relu(s_i ⊙ (W (r_i ⊙ x)) + b_i)` for
/// member `i`, in one product for all members.
///
/// The scales `r` and `s` start as 1, and all members start with the same bias: what makes members different is a first scale of
/// their input.
///
/// # Shapes
/// `x`: `[n_rows n_members, n_in]`, the members of a row after each other; the result `[n_rows n_members, n_out]`. `weight`:
/// `[n_out, n_in]`; `scale_in`: `[n_members, n_in]`; `scale_out` and `bias`: `[n_members, n_out]`.
/// # Reference
/// Wen, Tran & Ba 2020, *BatchEnsemble: An Alternative Approach to Efficient Ensemble and Lifelong Learning*, arXiv:2002.06715;
/// `LinearBatchEnsemble` of the package `tabm`.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchEnsemble {
    n_members: usize,
    n_in: usize,
    n_out: usize,
    weight: ParameterId,
    scale_in: Option<ParameterId>,
    scale_out: ParameterId,
    bias: ParameterId,
}

impl BatchEnsemble {
    /// Adds `name.weight`, `name.scale_in`, `name.scale_out` and `name.bias` to the parameters.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::tensor::Graph;
    /// use brisk_nn::{BatchEnsemble, ParametersBuilder};
    ///
    /// let mut builder = ParametersBuilder::new();
    /// let layer = BatchEnsemble::new(&mut builder, "hidden", 4, 3, 8);
    /// let graph = Graph::inference("predict");
    /// let two_rows = graph.constant("x", &[0.5; 2 * 4 * 3], &[2 * 4, 3]);
    /// assert_eq!(layer.forward(&builder.build(7).bind(&graph), &two_rows).shape(), [2 * 4, 8]);
    /// graph.check()?;
    /// # Ok::<(), brisk_nn::Error>(())
    /// ```
    #[track_caller]
    pub fn new(params: &mut ParametersBuilder, name: &str, n_members: usize, n_in: usize, n_out: usize) -> Self {
        let layer = Self::of_scaled(params, name, n_members, n_in, n_out);
        let scale_in = params.add(format!("{name}.scale_in"), &[n_members, n_in], Init::Constant(1.0));
        Self { scale_in: Some(scale_in), ..layer }
    }

    /// A layer without `name.scale_in`, for input that each member has scaled already.
    #[track_caller]
    pub(crate) fn of_scaled(params: &mut ParametersBuilder, name: &str, n_members: usize, n_in: usize, n_out: usize) -> Self {
        let weight = params.add(format!("{name}.weight"), &[n_out, n_in], Init::FanIn(n_in));
        let scale_out = params.add(format!("{name}.scale_out"), &[n_members, n_out], Init::Constant(1.0));
        let bias = params.add(format!("{name}.bias"), &[n_members, n_out], Init::RepeatedFanIn { n_in, len: n_out });
        Self { n_members, n_in, n_out, weight, scale_in: None, scale_out, bias }
    }

    /// The number of columns of its input.
    pub fn n_in(&self) -> usize {
        self.n_in
    }

    /// Records the layer.
    ///
    /// # Errors
    /// [`Error::Shape`] if `x` has a different number of columns, or rows that are not a multiple of the members.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let Self { n_members, n_in, n_out, .. } = *self;
        let _scope = params.enter(self.weight);
        let n_rows = match *x.shape() {
            [n, found] if found == n_in && n % n_members == 0 => n / n_members,
            ref found => {
                let expected = format!("[n_rows * {n_members}, {n_in}]");
                let error = Error::Shape { op: "batch_ensemble", arg: "x", expected, found: found.to_vec() };
                return x.graph().failed(error, x.dtype(), &[found.first().copied().unwrap_or(1), n_out]);
            }
        };
        let by_member = |id: ParameterId, len: usize| params.tensor(id).reshape(&[1, n_members, len]);
        let scaled = self.scale_in.map(|scale| {
            let scaled = x.reshape(&[n_rows, n_members, n_in]).multiply(&by_member(scale, n_in));
            scaled.reshape(&[n_rows * n_members, n_in])
        });
        let product = scaled.as_ref().unwrap_or(x).linear(params.tensor(self.weight), None, Activation::identity());
        let [of_product, of_scale, of_bias] = [0, 1, 2].map(Expr::input);
        let finish = ElementwiseOperation::new("batch_ensemble", (of_product * of_scale + of_bias).relu());
        let product = product.reshape(&[n_rows, n_members, n_out]);
        let finished = x.graph().apply(finish, &[&product, &by_member(self.scale_out, n_out), &by_member(self.bias, n_out)]);
        finished.reshape(&[n_rows * n_members, n_out])
    }
}
