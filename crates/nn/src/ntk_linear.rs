use brisk_kernels::Transpose;
use brisk_kernels::expr::Expr;
use brisk_tensor::{Activation, ElementwiseOperation, Tensor};

use crate::bound::Bound;
use crate::init::Init;
use crate::parameters::{ParameterId, ParametersBuilder};

/// A fully connected layer of each of several networks, in NTK parametrisation and with an activation whose strength is trained:
/// `z + (act(z) - z) a` for `z = x W / √n_in + b`.
///
/// Weights have a deviation of 1 in layers of any width, so that a step of Adam is the same share of them.
///
/// # Shapes
/// `x`: `[n_members, n_rows, n_in]`; the result `[n_members, n_rows, n_out]`. `weight`: `[n_members, n_in, n_out]`; `bias` and
/// `strength`: `[n_members, 1, n_out]`.
/// # Reference
/// Holzmüller, Grinsztajn & Steinwart 2024, arXiv:2407.04491; `use_parametric_act` of the package `pytabkit`. Jacot, Gabriel &
/// Hongler 2018, arXiv:1806.07572: the parametrisation.
#[derive(Debug, Clone, PartialEq)]
pub struct NtkLinear {
    n_in: usize,
    weight: ParameterId,
    bias: ParameterId,
    /// The activation and its strength.
    activation: Option<(Activation, ParameterId)>,
}

impl NtkLinear {
    /// Adds `name.weight`, normal, `name.bias`, normal with variance 1/3, and `name.strength`, 1.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::tensor::Graph;
    /// use brisk_nn::{Activation, NtkLinear, ParametersBuilder};
    ///
    /// let mut builder = ParametersBuilder::new();
    /// let layer = NtkLinear::new(&mut builder, "hidden", 4, 3, 8, Activation::mish());
    /// let graph = Graph::inference("predict");
    /// let two_rows = graph.constant("x", &[0.5; 4 * 2 * 3], &[4, 2, 3]);
    /// assert_eq!(layer.forward(&builder.build(7).bind(&graph), &two_rows).shape(), [4, 2, 8]);
    /// graph.check()?;
    /// # Ok::<(), brisk_nn::Error>(())
    /// ```
    #[track_caller]
    pub fn new(
        params: &mut ParametersBuilder,
        name: &str,
        n_members: usize,
        n_in: usize,
        n_out: usize,
        activation: Activation,
    ) -> Self {
        // That of `pytabkit` for biases: weighted means of five rows, with the weights of a random point of a simplex.
        let bias = Init::Normal((1.0_f32 / 3.0).sqrt());
        let layer = Self::without_activation(params, name, [n_members, n_in, n_out], [Init::Normal(1.0), bias]);
        let strength = params.add(format!("{name}.strength"), &[n_members, 1, n_out], Init::Constant(1.0));
        Self { activation: Some((activation, strength)), ..layer }
    }

    /// A last layer, without an activation: adds only `name.weight` and `name.bias`, zeros.
    #[track_caller]
    pub fn head(params: &mut ParametersBuilder, name: &str, n_members: usize, n_in: usize, n_out: usize) -> Self {
        Self::without_activation(params, name, [n_members, n_in, n_out], [Init::Constant(0.0); 2])
    }

    #[track_caller]
    fn without_activation(
        params: &mut ParametersBuilder,
        name: &str,
        [n_members, n_in, n_out]: [usize; 3],
        [weight, bias]: [Init; 2],
    ) -> Self {
        let weight = params.add(format!("{name}.weight"), &[n_members, n_in, n_out], weight);
        let bias = params.add(format!("{name}.bias"), &[n_members, 1, n_out], bias);
        Self { n_in, weight, bias, activation: None }
    }

    /// Records the layer.
    ///
    /// # Errors
    /// [`Error::Shape`](brisk_tensor::Error::Shape) if `x` has a different number of members or columns.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let _scope = params.enter(self.weight);
        let product = x.batched_matmul(params.tensor(self.weight), Transpose::None);
        let [of_product, of_bias, of_strength] = [0, 1, 2].map(Expr::input);
        let z = of_product / (self.n_in as f32).sqrt() + of_bias;
        let bias = params.tensor(self.bias);
        match &self.activation {
            None => x.graph().apply(ElementwiseOperation::new("ntk_linear", z), &[&product, bias]),
            Some((activation, strength)) => {
                let activated = activation.forward.substitute(std::slice::from_ref(&z));
                let finish = ElementwiseOperation::new("ntk_linear", &z + (activated - &z) * of_strength);
                x.graph().apply(finish, &[&product, bias, params.tensor(*strength)])
            }
        }
    }
}
