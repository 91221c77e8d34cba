//! Derivatives that the caller gives, and values that change between an operation and its gradient.

use brisk_tensor::program::Device;
use brisk_tensor::program::kernels::{Map, MapInPlace};
use brisk_tensor::{Activation, DType, ElementwiseOperation, Error, Expr, Graph, Persistent, Tensor, check_gradients};

use crate::refusal::{check_refused, parameter};

#[test]
fn derivatives_of_other_inputs_are_refused() {
    let x = |i| Expr::input(i);
    let of = |operation: ElementwiseOperation, n_inputs: usize, message: &str| {
        check_refused(
            |graph| {
                let inputs: Vec<Tensor> = (0..n_inputs).map(|_| parameter(graph, &[2])).collect();
                graph.apply(operation, &inputs.iter().collect::<Vec<_>>())
            },
            message,
        );
    };
    let (square, product) = (ElementwiseOperation::new("mine", x(0) * x(0)), ElementwiseOperation::new("mine", x(0) * x(1)));
    of(
        product.clone().with_derivative_from_output(x(0)),
        2,
        "mine: the derivative `x0` from the output, and 2 inputs, expected one input, or the derivative for each by `with_derivative`",
    );
    of(
        square.clone().with_derivative_from_output(x(1)),
        1,
        "mine: the derivative `x1` from the output, expected an expression of the output, x0",
    );
    of(
        square.clone().with_derivative_from_output(x(0)).with_derivative(0, x(0) * 2.0),
        1,
        "mine: the derivatives `x0` from the output and `x0 * 2` from the input, expected one of them",
    );
    of(
        square.clone().with_derivative(5, x(0)),
        1,
        "mine: the derivative `x0` for input 5 (number of inputs: 1), expected an input",
    );
    for beyond in [1, 3] {
        of(
            square.clone().with_derivative(0, x(beyond)),
            1,
            &format!("mine: the derivative `x{beyond}` (number of inputs: 1), expected an expression of the inputs"),
        );
    }
    let sum = (0..8).map(x).reduce(|a, b| a + b).expect("eight");
    of(
        ElementwiseOperation::new("mine", sum),
        8,
        "mine: a kernel with 9 arguments (outputs: 1), expected at least one output, and at most 8 arguments in all",
    );
    let own = Activation { from_output: Some(x(1)), ..Activation::identity() };
    check_refused(
        |graph| parameter(graph, &[2]).activate(own.clone()),
        "activate: the derivative `x1` from the output, expected an expression of the output, x0",
    );
    check_refused(
        |graph| parameter(graph, &[2, 2]).linear(&parameter(graph, &[2, 2]), None, own.clone()),
        "linear: the derivative `x1` from the output, expected an expression of the output, x0",
    );
}

#[test]
fn a_gradient_of_too_many_inputs_is_refused_by_the_name_of_the_operation() {
    let graph = Graph::training("net");
    let inputs: Vec<Tensor> = (0..7).map(|_| parameter(&graph, &[2])).collect();
    let product = (0..7).map(Expr::input).reduce(|a, b| a * b).expect("seven").exp();
    let y = graph.apply(ElementwiseOperation::new("mine", product), &inputs.iter().collect::<Vec<_>>());
    let error = graph.backward(&y.sum(..)).expect_err("it reads eight buffers");
    assert!(error.kind().to_string().starts_with("mine: a kernel with 9 arguments"), "{error}");
}

#[test]
fn the_last_derivative_of_an_input_counts() -> Result<(), Error> {
    let x = Expr::input(0);
    let operation = ElementwiseOperation::new("mine", x.powi(2)).with_derivative(0, x.clone()).with_derivative(0, x * 2.0);
    check_gradients(&[&[5]], |graph, p| graph.apply(operation.clone(), &[&p[0]]))
}

#[test]
fn gradients_of_nothing_are_refused() {
    let error = check_gradients(&[], |graph, _| graph.constant("x", &[1.0], &[1])).expect_err("there is no parameter");
    assert_eq!(error.to_string(), "check_gradients: no shapes, expected the shape of at least one parameter");
}

struct Net {
    graph: Graph,
    values: Persistent,
    grads: Persistent,
    p: Tensor,
}

impl Net {
    fn new() -> Self {
        let [values, grads] = ["values", "grads"].map(|name| Persistent::new(name, DType::F32, 2));
        let graph = Graph::training("net");
        let p = graph.parameter(&values, &grads, 0..1, &[1]);
        Self { graph, values, grads, p }
    }

    /// Adds 100 to element `i` of the values.
    fn add_100(&self, i: usize) {
        let add = MapInPlace { map: Map::unary(1, |x| x + 100.0), input: 0 };
        self.graph.push(add, &[self.graph.buffer(&self.values).slice(i..i + 1)]);
    }

    /// The gradient where the value is 3.
    fn gradient(&self) -> Result<f32, Error> {
        let device = Device::cpu()?;
        device.write(&self.values, &[3.0_f32, 3.0])?;
        self.graph.compile(&device)?.run(1)?;
        Ok(device.read::<f32>(&self.grads)?[0])
    }
}

#[test]
fn a_value_that_is_overwritten_before_the_backward_pass_is_refused() {
    let overwritten = |op: &'static str, what: &str, record: &dyn Fn(&Net) -> Tensor| {
        let net = Net::new();
        let y = record(&net);
        let error = net.graph.backward(&y.sum(..)).expect_err("the gradient would be that of another value");
        assert_eq!(error.kind(), &Error::Overwritten { op, what: what.to_owned() });
        assert!(net.graph.check().is_err(), "the graph cannot be compiled");
    };
    overwritten("square", "its input `a`", &|net| {
        let y = net.p.square();
        net.add_100(0);
        y
    });
    let overwrite = |net: &Net, y: &Tensor| net.graph.push(Map::flat(1, Expr::constant(0.0)), &[y.slice()]);
    overwritten("exp", "its result", &|net| {
        let y = net.p.exp();
        overwrite(net, &y);
        y
    });
    // By the derivative of an activation that is part of a product.
    overwritten("linear", "its result", &|net| {
        let y = net.p.reshape(&[1, 1]).linear(&net.graph.constant("w", &[1.0], &[1, 1]), None, Activation::tanh());
        overwrite(net, &y);
        y
    });
}

#[test]
fn values_that_the_gradient_does_not_need_may_change() -> Result<(), Error> {
    let gradient = |record: &dyn Fn(&Net) -> Tensor| {
        let net = Net::new();
        let y = record(&net);
        net.graph.backward(&y.sum(..))?;
        net.add_100(0);
        net.gradient()
    };
    assert_eq!(gradient(&|net| net.p.square())?, 6.0, "changed after the backward pass");
    let before = gradient(&|net| {
        net.add_100(0);
        net.p.square()
    });
    assert_eq!(before?, 206.0, "changed before the operation");
    let unread = gradient(&|net| {
        let y = &net.p * 5.0;
        net.add_100(0);
        y
    });
    assert_eq!(unread?, 5.0);
    let other = gradient(&|net| {
        let y = net.p.square();
        net.add_100(1);
        y
    });
    assert_eq!(other?, 6.0, "another element of the buffer");
    Ok(())
}
