use brisk_program::kernels::{
    Activate, Activation, ActivationGrad, Add, Conv2d, Conv2dGradInput, ConvShape, DType, Epilogue, Images, Matmul, Multiply,
    OutputGrad, Transpose, Window,
};
use brisk_program::{Device, DeviceKind, Persistent, Program, Rewrite, Slice};

use crate::gpu::devices;
use crate::random::Random;

/// A program under test: its inputs are filled with numbers, its outputs compared with and without rewrites.
struct Case {
    program: Program,
    persistents: Vec<Persistent>,
}

impl Case {
    fn new() -> Self {
        Self { program: Program::new("case"), persistents: Vec::new() }
    }

    fn persistent(&mut self, name: &str, len: usize) -> Slice {
        let persistent = Persistent::new(name, DType::F32, len);
        let slice = self.program.persistent(&persistent);
        self.persistents.push(persistent);
        slice
    }

    fn transient(&mut self, name: &str, len: usize) -> Slice {
        self.program.transient(name, DType::F32, len)
    }

    fn push(&mut self, kernel: impl brisk_program::kernels::Kernel, args: &[Slice]) {
        self.program.push(kernel, args).expect("a well-formed step");
    }

    fn run(&self, device: &Device, program: &Program) -> Vec<Vec<f32>> {
        let mut random = Random::new(7);
        for persistent in &self.persistents {
            device.write(persistent, &random.floats(persistent.len())).expect("it fits");
        }
        device.compile(program).expect("it compiles").run(2).expect("it runs");
        self.persistents.iter().map(|persistent| device.read(persistent).expect("a buffer")).collect()
    }

    /// What becomes of it: the kernels that are left, and the same values as before.
    #[track_caller]
    fn check(&self, rewrites: &[Rewrite], expected: &[&str]) {
        let rewritten = self.program.rewritten(rewrites);
        let names: Vec<_> = rewritten.kernel_names().collect();
        assert_eq!(names, expected, "from {}to {rewritten}", self.program);
        let [before, after] = [&self.program, &rewritten].map(|program| program.plan().expect("in order").peak_bytes());
        assert!(after <= before, "{before} bytes become {after}");
        for device in devices() {
            let (plain, fused) = (self.run(&device, &self.program), self.run(&device, &rewritten));
            for ((plain, fused), persistent) in plain.iter().zip(&fused).zip(&self.persistents) {
                // The twins keep each bit; a GPU's compiler may round once where there were two kernels to round.
                let tolerance = if device.info().kind == DeviceKind::Cpu { 0.0 } else { 1e-6 };
                let close = plain.iter().zip(fused).all(|(a, b)| (a - b).abs() <= tolerance + tolerance * a.abs());
                assert!(close, "{} on {}: {plain:?}, fused {fused:?}", persistent.name(), device.info());
            }
        }
    }
}

const RELU: Activation = Activation::Relu;
const TANH: Activation = Activation::Tanh;

fn product(epilogue: Epilogue) -> Matmul {
    Matmul { m: 5, n: 7, k: 3, transpose: Transpose::B, epilogue }
}

#[test]
fn an_activation_goes_into_the_product() {
    for (epilogue, fused) in
        [(Epilogue::None, Epilogue::Activation(TANH)), (Epilogue::Bias(Activation::Identity), Epilogue::Bias(TANH))]
    {
        let mut case = Case::new();
        let [x, w, bias] = [("x", 15), ("w", 21), ("bias", 7)].map(|(name, len)| case.persistent(name, len));
        let (z, y) = (case.transient("z", 35), case.persistent("y", 35));
        let args = if epilogue == Epilogue::None { vec![x, w, z] } else { vec![x, w, bias, z] };
        case.push(product(epilogue), &args);
        case.push(Activate { n: 35, activation: TANH }, &[z, y]);
        case.check(&[Rewrite::Epilogues], &["matmul"]);
        let shown = case.program.rewritten(&Rewrite::ALL).to_string();
        assert!(shown.contains(&format!("{fused:?}")) && shown.contains(") -> y "), "{shown}");
        case.check(&[Rewrite::Chains], &["matmul", "activate"]);
        case.check(&[], &["matmul", "activate"]);
    }
}

#[test]
fn a_derivative_goes_into_the_product() {
    let mut case = Case::new();
    let [dz, w, below] = [("dz", 15), ("w", 21), ("below", 35)].map(|(name, len)| case.persistent(name, len));
    let (dy, dx) = (case.transient("dy", 35), case.persistent("dx", 35));
    case.push(product(Epilogue::None), &[dz, w, dy]);
    case.push(OutputGrad { n: 35, activation: TANH }, &[dy, below, dx]);
    case.check(&Rewrite::ALL, &["matmul"]);
}

#[test]
fn convolutions_too() {
    let x = Images { n_images: 2, height: 4, width: 5, n_channels: 3 };
    let shape = ConvShape { x, n_out: 4, window: Window::square(3, 1) };
    let (n_x, n_w, n_y) = (2 * 4 * 5 * 3, 4 * 9 * 3, 2 * 4 * 5 * 4);
    let mut case = Case::new();
    let [input, w, y, dx] = [("x", n_x), ("w", n_w), ("y", n_y), ("dx", n_x)].map(|(name, len)| case.persistent(name, len));
    let (z, dz) = (case.transient("z", n_y), case.transient("dz", n_x));
    case.push(Conv2d { shape, epilogue: Epilogue::None }, &[input, w, z]);
    case.push(Activate { n: n_y, activation: RELU }, &[z, y]);
    case.push(Conv2dGradInput { shape, epilogue: Epilogue::None }, &[y, w, dz]);
    case.push(OutputGrad { n: n_x, activation: TANH }, &[dz, input, dx]);
    case.check(&[Rewrite::Epilogues], &["conv2d", "conv2d_grad_input"]);
}

/// The derivative of GELU is not to be had from its output, so no product has it in its epilogue.
#[test]
fn what_no_epilogue_does_stays() {
    let mut case = Case::new();
    let [x, w] = [("x", 15), ("w", 21)].map(|(name, len)| case.persistent(name, len));
    let (z, y) = (case.transient("z", 35), case.persistent("y", 35));
    case.push(product(Epilogue::None), &[x, w, z]);
    case.push(Activate { n: 35, activation: Activation::Gelu }, &[z, y]);
    case.check(&Rewrite::ALL, &["matmul", "activate"]);
}

#[test]
fn a_chain_becomes_one_kernel() {
    let mut case = Case::new();
    let [x, skip, weight, y] = ["x", "skip", "weight", "y"].map(|name| case.persistent(name, 100));
    let [a, b, c] = ["a", "b", "c"].map(|name| case.transient(name, 100));
    case.push(Add { n: 100 }, &[x, skip, a]);
    case.push(Activate { n: 100, activation: Activation::Gelu }, &[a, b]);
    // The value is the second operand here.
    case.push(Multiply { n: 100 }, &[weight, b, c]);
    case.push(ActivationGrad { n: 100, activation: Activation::Silu }, &[c, x, y]);
    case.check(&[Rewrite::Chains], &["elementwise"]);
    case.check(&[Rewrite::Epilogues], &["add", "activate", "multiply", "activation_grad"]);
}

#[test]
fn a_chain_too_long_becomes_several() {
    let mut case = Case::new();
    let (mut v, y) = (case.persistent("x", 64), case.persistent("y", 64));
    for i in 0..9 {
        let next = if i == 8 { y } else { case.transient(&format!("t{i}"), 64) };
        case.push(Activate { n: 64, activation: TANH }, &[v, next]);
        v = next;
    }
    case.check(&[Rewrite::Chains], &["elementwise", "elementwise", "activate"]);
}

/// A product, what is added to it and its activation: the sum is of the product's shape, the rest one kernel.
#[test]
fn a_residual_behind_a_product() {
    let mut case = Case::new();
    let [x, w, skip, y] = [("x", 15), ("w", 21), ("skip", 35), ("y", 35)].map(|(name, len)| case.persistent(name, len));
    let [z, sum] = ["z", "sum"].map(|name| case.transient(name, 35));
    case.push(product(Epilogue::None), &[x, w, z]);
    case.push(Add { n: 35 }, &[skip, z, sum]);
    case.push(Activate { n: 35, activation: RELU }, &[sum, y]);
    case.check(&Rewrite::ALL, &["matmul", "elementwise"]);
}

/// All that keeps two kernels apart, each alone.
#[test]
fn what_others_need_stays() {
    // The value is read again later.
    let mut case = Case::new();
    let [x, y, z] = ["x", "y", "z"].map(|name| case.persistent(name, 64));
    let sum = case.transient("sum", 64);
    case.push(Add { n: 64 }, &[x, y, sum]);
    case.push(Activate { n: 64, activation: RELU }, &[sum, z]);
    case.push(Add { n: 64 }, &[z, sum, y]);
    case.check(&Rewrite::ALL, &["add", "activate", "add"]);
    // It is persistent.
    let mut case = Case::new();
    let [x, y, sum] = ["x", "y", "sum"].map(|name| case.persistent(name, 64));
    case.push(Add { n: 64 }, &[x, x, sum]);
    case.push(Activate { n: 64, activation: RELU }, &[sum, y]);
    case.check(&Rewrite::ALL, &["add", "activate"]);
    // Both operands are the value.
    let mut case = Case::new();
    let [x, y] = ["x", "y"].map(|name| case.persistent(name, 64));
    let t = case.transient("t", 64);
    case.push(Activate { n: 64, activation: RELU }, &[x, t]);
    case.push(Add { n: 64 }, &[t, t, y]);
    case.check(&Rewrite::ALL, &["activate", "add"]);
    // Only a part of it is read.
    let mut case = Case::new();
    let [x, y] = [("x", 128), ("y", 64)].map(|(name, len)| case.persistent(name, len));
    let t = case.transient("t", 128);
    case.push(Activate { n: 128, activation: RELU }, &[x, t]);
    case.push(Activate { n: 64, activation: TANH }, &[t.slice(64..128), y]);
    case.check(&Rewrite::ALL, &["activate", "activate"]);
    // The result goes where the first kernel reads: a GPU binds a buffer for one or the other.
    let mut case = Case::new();
    let [x, y] = ["x", "y"].map(|name| case.persistent(name, 64));
    let t = case.transient("t", 64);
    case.push(Add { n: 64 }, &[x, y, t]);
    case.push(Activate { n: 64, activation: TANH }, &[t, x]);
    case.check(&Rewrite::ALL, &["add", "activate"]);
}

/// What the first kernel reads is overwritten before the second: to compute it later would be too late.
#[test]
fn an_input_that_changes_between() {
    let mut case = Case::new();
    let [x, y, z] = ["x", "y", "z"].map(|name| case.persistent(name, 64));
    let t = case.transient("t", 64);
    case.push(Add { n: 64 }, &[x, y, t]);
    case.push(Activate { n: 64, activation: TANH }, &[z, x]);
    case.push(Multiply { n: 64 }, &[t, y, z]);
    case.check(&Rewrite::ALL, &["add", "activate", "multiply"]);
    // The same with another kernel between that does not.
    let mut case = Case::new();
    let [x, y, z, other] = ["x", "y", "z", "other"].map(|name| case.persistent(name, 64));
    let t = case.transient("t", 64);
    case.push(Add { n: 64 }, &[x, y, t]);
    case.push(Activate { n: 64, activation: TANH }, &[x, other]);
    case.push(Multiply { n: 64 }, &[t, other, z]);
    case.check(&Rewrite::ALL, &["activate", "elementwise"]);
}

/// Run where the second did, the product would keep alive for longer what is larger than its result.
#[test]
fn large_inputs_are_not_kept() {
    for (is_between, expected) in [(false, &["activate", "matmul"][..]), (true, &["activate", "matmul", "activate", "activate"])]
    {
        let mut case = Case::new();
        let [x, w, y, z] = [("x", 100), ("w", 140), ("y", 35), ("z", 35)].map(|(name, len)| case.persistent(name, len));
        let [a, product] = [("a", 100), ("product", 35)].map(|(name, len)| case.transient(name, len));
        case.push(Activate { n: 100, activation: TANH }, &[x, a]);
        case.push(Matmul { m: 5, n: 7, k: 20, transpose: Transpose::B, epilogue: Epilogue::None }, &[a, w, product]);
        if is_between {
            case.push(Activate { n: 35, activation: RELU }, &[w.slice(0..35), z]);
        }
        case.push(Activate { n: 35, activation: RELU }, &[product, y]);
        case.check(&Rewrite::ALL, expected);
    }
}

/// The result goes where the value is that nobody reads any more, and whoever reads the result reads it there.
#[test]
fn the_last_to_read_writes_in_place() {
    let mut case = Case::new();
    let [x, skip, y] = ["x", "skip", "y"].map(|name| case.persistent(name, 100));
    let [a, b, c] = ["a", "b", "c"].map(|name| case.transient(name, 100));
    case.push(Activate { n: 100, activation: TANH }, &[x, a]);
    // The value is the second operand.
    case.push(Add { n: 100 }, &[skip, a, b]);
    case.push(ActivationGrad { n: 100, activation: Activation::Gelu }, &[b, x, c]);
    case.push(Activate { n: 100, activation: RELU }, &[c, y]);
    case.check(&[Rewrite::InPlace], &["activate", "elementwise_in_place", "elementwise_in_place", "activate"]);
    let transient_bytes = |program: &Program| program.plan().expect("in order").transient_bytes();
    let rewritten = case.program.rewritten(&[Rewrite::InPlace]);
    assert_eq!((transient_bytes(&case.program), transient_bytes(&rewritten)), (1024, 512), "{rewritten}");
}

/// All that keeps a value where it is, each alone.
#[test]
fn what_is_not_put_in_place() {
    let chain = ["activate", "add", "activate"];
    let [whole, half] = [64, 32];
    for (n, value_is_read_later, operand_is_value, has_operand) in
        [(whole, true, false, true), (whole, false, true, true), (whole, false, false, false), (half, false, false, true)]
    {
        let mut case = Case::new();
        let [x, y] = ["x", "y"].map(|name| case.persistent(name, 64));
        let (a, b) = (case.transient("a", 64), case.transient("b", n));
        case.push(Activate { n: 64, activation: TANH }, &[x, a]);
        if has_operand {
            let operand = if operand_is_value { a } else { x };
            case.push(Add { n }, &[a.slice(0..n), operand.slice(0..n), b]);
        } else {
            case.push(Activate { n, activation: RELU }, &[a, b]);
        }
        case.push(Activate { n, activation: TANH }, &[if value_is_read_later { a } else { b }, y.slice(0..n)]);
        let expected = if has_operand { chain } else { ["activate"; 3] };
        case.check(&[Rewrite::InPlace], &expected);
    }
}

#[test]
fn a_rewritten_program_is_its_own() {
    let mut case = Case::new();
    let [x, y] = ["x", "y"].map(|name| case.persistent(name, 64));
    let t = case.transient("t", 64);
    case.push(Add { n: 64 }, &[x, x, t]);
    case.push(Activate { n: 64, activation: RELU }, &[t, y]);
    let mut rewritten = case.program.rewritten(&Rewrite::ALL);
    let error = rewritten.push(Activate { n: 64, activation: RELU }, &[t, y]).expect_err("a slice of the other");
    assert!(matches!(error, brisk_program::Error::ForeignSlice { .. }), "{error}");
    assert_eq!(case.program.n_kernels(), 2, "the first is as it was");
    assert_eq!(case.program.to_string().lines().count(), 3, "a line on the whole and one a kernel");
}
