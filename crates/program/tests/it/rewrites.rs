use brisk_program::kernels::expr::Expr;
use brisk_program::kernels::{
    Activation, Conv2d, Conv2dGradInput, ConvShape, DType, Epilogue, Images, Map, Matmul, Transpose, Window,
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

    /// Checks the kernels that are left after the rewrites, and that the values are the same as before.
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
                // The twins are bit-identical; a GPU's compiler may round once where two kernels rounded twice.
                let tolerance = if device.info().kind == DeviceKind::Cpu { 0.0 } else { 1e-6 };
                let close = plain.iter().zip(fused).all(|(a, b)| (a - b).abs() <= tolerance + tolerance * a.abs());
                assert!(close, "{} on {}: {plain:?}, fused {fused:?}", persistent.name(), device.info());
            }
        }
    }
}

fn product(epilogue: Epilogue) -> Matmul {
    Matmul { n_batch: 1, m: 5, n: 7, k: 3, transpose: Transpose::B, epilogue }
}

#[test]
fn an_activation_goes_into_the_product() {
    for (epilogue, fused) in [
        (Epilogue::none(), Epilogue::activation(&Activation::tanh())),
        (Epilogue::bias(&Activation::identity()), Epilogue::bias(&Activation::tanh())),
    ] {
        let mut case = Case::new();
        let [x, w, bias] = [("x", 15), ("w", 21), ("bias", 7)].map(|(name, len)| case.persistent(name, len));
        let (z, y) = (case.transient("z", 35), case.persistent("y", 35));
        let args = if epilogue == Epilogue::none() { vec![x, w, z] } else { vec![x, w, bias, z] };
        case.push(product(epilogue), &args);
        case.push(Map::flat(35, Activation::tanh().forward.clone()), &[z, y]);
        case.check(&[Rewrite::Epilogues], &["matmul"]);
        let shown = case.program.rewritten(&Rewrite::ALL).to_string();
        assert!(shown.contains(&format!("{fused:?}")) && shown.contains(") -> y "), "{shown}");
        case.check(&[Rewrite::Chains], &["matmul", "map"]);
        case.check(&[], &["matmul", "map"]);
    }
}

/// As the scale and the mask of attention do.
#[test]
fn a_matrix_goes_into_a_batch_of_products() {
    let mut case = Case::new();
    let [q, k, mask] = [("q", 30), ("k", 42), ("mask", 70)].map(|(name, len)| case.persistent(name, len));
    let (scores, masked) = (case.transient("scores", 70), case.persistent("masked", 70));
    case.push(Matmul { n_batch: 2, ..product(Epilogue::none()) }, &[q, k, scores]);
    case.push(Map::flat(70, Expr::input(0) * 0.5 + Expr::input(1)), &[scores, mask, masked]);
    case.check(&[Rewrite::Epilogues], &["matmul"]);
    case.check(&[], &["matmul", "map"]);
}

#[test]
fn a_derivative_goes_into_the_product() {
    let mut case = Case::new();
    let [dz, w, below] = [("dz", 15), ("w", 21), ("below", 35)].map(|(name, len)| case.persistent(name, len));
    let (dy, dx) = (case.transient("dy", 35), case.persistent("dx", 35));
    case.push(product(Epilogue::none()), &[dz, w, dy]);
    case.push(Map::flat(35, Activation::tanh().grad_from_output().expect("tanh tells")), &[dy, below, dx]);
    case.check(&Rewrite::ALL, &["matmul"]);
}

#[test]
fn convolutions_too() {
    let x = Images { n_images: 2, height: 4, width: 5, n_channels: 3 };
    let shape = ConvShape::dense(x, 4, Window::square(3, 1));
    let (n_x, n_w, n_y) = (2 * 4 * 5 * 3, 4 * 9 * 3, 2 * 4 * 5 * 4);
    let mut case = Case::new();
    let [input, w, y, dx] = [("x", n_x), ("w", n_w), ("y", n_y), ("dx", n_x)].map(|(name, len)| case.persistent(name, len));
    let (z, dz) = (case.transient("z", n_y), case.transient("dz", n_x));
    case.push(Conv2d { shape, epilogue: Epilogue::none() }, &[input, w, z]);
    case.push(Map::flat(n_y, Activation::relu().forward.clone()), &[z, y]);
    case.push(Conv2dGradInput { shape, epilogue: Epilogue::none() }, &[y, w, dz]);
    case.push(Map::flat(n_x, Activation::tanh().grad_from_output().expect("tanh tells")), &[dz, input, dx]);
    case.check(&[Rewrite::Epilogues], &["conv2d", "conv2d_grad_input"]);
}

#[test]
fn any_expression_goes_into_the_product() {
    let mut case = Case::new();
    let [x, w, bias] = [("x", 15), ("w", 21), ("bias", 7)].map(|(name, len)| case.persistent(name, len));
    let (z, y) = (case.transient("z", 35), case.persistent("y", 35));
    case.push(product(Epilogue::bias(&Activation::identity())), &[x, w, bias, z]);
    case.push(Map::unary(35, |x| x.gelu() * 2.0), &[z, y]);
    case.check(&Rewrite::ALL, &["matmul"]);
}

/// The derivative of GELU needs its input, which the product of the backward pass then reads.
#[test]
fn a_derivative_by_the_input_goes_into_the_product() {
    let mut case = Case::new();
    let [dz, w, below] = [("dz", 15), ("w", 21), ("below", 35)].map(|(name, len)| case.persistent(name, len));
    let (dy, dx) = (case.transient("dy", 35), case.persistent("dx", 35));
    case.push(product(Epilogue::none()), &[dz, w, dy]);
    case.push(Map::flat(35, Activation::gelu().grad()), &[dy, below, dx]);
    case.check(&Rewrite::ALL, &["matmul"]);
}

#[test]
fn a_chain_becomes_one_kernel() {
    let mut case = Case::new();
    let [x, skip, weight, y] = ["x", "skip", "weight", "y"].map(|name| case.persistent(name, 100));
    let [a, b, c] = ["a", "b", "c"].map(|name| case.transient(name, 100));
    case.push(Map::binary(100, |a, b| a + b), &[x, skip, a]);
    case.push(Map::unary(100, |x| x.gelu()), &[a, b]);
    // The value is the second operand here.
    case.push(Map::binary(100, |a, b| a * b), &[weight, b, c]);
    case.push(Map::flat(100, Activation::silu().grad()), &[c, x, y]);
    case.check(&[Rewrite::Chains], &["map"]);
    case.check(&[Rewrite::Epilogues], &["map", "map", "map", "map"]);
}

#[test]
fn a_long_chain_becomes_one_kernel_and_a_very_long_one_several() {
    for (n, activation, expected) in [(9, Activation::tanh(), &["map"][..]), (75, Activation::gelu(), &["map", "map"])] {
        let mut case = Case::new();
        let (mut v, y) = (case.persistent("x", 64), case.persistent("y", 64));
        for i in 0..n {
            let next = if i == n - 1 { y } else { case.transient(&format!("t{i}"), 64) };
            case.push(Map::flat(64, activation.forward.clone()), &[v, next]);
            v = next;
        }
        case.check(&[Rewrite::Chains], expected);
    }
}

#[test]
fn a_fused_map_reads_each_buffer_once() {
    let mut case = Case::new();
    let [x, scale, y] = [("x", 60), ("scale", 5), ("y", 60)].map(|(name, len)| case.persistent(name, len));
    let t = case.transient("t", 60);
    let [a, b] = [0, 1].map(Expr::input);
    case.push(Map::new(&a * &b, &[&[12, 5], &[5]]).expect("they broadcast"), &[x, scale, t]);
    case.push(Map::new(a * b, &[&[12, 5], &[12, 5]]).expect("they broadcast"), &[t, x, y]);
    case.check(&Rewrite::ALL, &["map"]);
    let shown = case.program.rewritten(&Rewrite::ALL).to_string();
    assert!(shown.contains("map(x, scale) -> y "), "{shown}");
}

/// A product, a residual that is added to it, and its activation.
#[test]
fn a_residual_after_a_product() {
    let mut case = Case::new();
    let [x, w, skip, y] = [("x", 15), ("w", 21), ("skip", 35), ("y", 35)].map(|(name, len)| case.persistent(name, len));
    let [z, sum] = ["z", "sum"].map(|name| case.transient(name, 35));
    case.push(product(Epilogue::none()), &[x, w, z]);
    case.push(Map::binary(35, |a, b| a + b), &[skip, z, sum]);
    case.push(Map::flat(35, Activation::relu().forward.clone()), &[sum, y]);
    case.check(&Rewrite::ALL, &["matmul"]);
    // An epilogue reads one further argument, and this one has a bias.
    let mut case = Case::new();
    let [x, w, bias, skip, y] =
        [("x", 15), ("w", 21), ("bias", 7), ("skip", 35), ("y", 35)].map(|(name, len)| case.persistent(name, len));
    let z = case.transient("z", 35);
    case.push(product(Epilogue::bias(&Activation::relu())), &[x, w, bias, z]);
    case.push(Map::binary(35, |a, b| a + b), &[skip, z, y]);
    case.check(&Rewrite::ALL, &["matmul", "map"]);
}

/// Every condition that prevents the fusion of two kernels, one at a time.
#[test]
fn what_others_need_stays() {
    // The value is read again later.
    let mut case = Case::new();
    let [x, y, z] = ["x", "y", "z"].map(|name| case.persistent(name, 64));
    let sum = case.transient("sum", 64);
    case.push(Map::binary(64, |a, b| a + b), &[x, y, sum]);
    case.push(Map::flat(64, Activation::relu().forward.clone()), &[sum, z]);
    case.push(Map::binary(64, |a, b| a + b), &[z, sum, y]);
    case.check(&Rewrite::ALL, &["map", "map", "map"]);
    // It is persistent.
    let mut case = Case::new();
    let [x, y, sum] = ["x", "y", "sum"].map(|name| case.persistent(name, 64));
    case.push(Map::binary(64, |a, b| a + b), &[x, x, sum]);
    case.push(Map::flat(64, Activation::relu().forward.clone()), &[sum, y]);
    case.check(&Rewrite::ALL, &["map", "map"]);
    // Both operands are the value.
    let mut case = Case::new();
    let [x, y] = ["x", "y"].map(|name| case.persistent(name, 64));
    let t = case.transient("t", 64);
    case.push(Map::flat(64, Activation::relu().forward.clone()), &[x, t]);
    case.push(Map::binary(64, |a, b| a + b), &[t, t, y]);
    case.check(&Rewrite::ALL, &["map", "map"]);
    // Only a part of it is read.
    let mut case = Case::new();
    let [x, y] = [("x", 128), ("y", 64)].map(|(name, len)| case.persistent(name, len));
    let t = case.transient("t", 128);
    case.push(Map::flat(128, Activation::relu().forward.clone()), &[x, t]);
    case.push(Map::flat(64, Activation::tanh().forward.clone()), &[t.slice(64..128), y]);
    case.check(&Rewrite::ALL, &["map", "map"]);
    // The result goes into a buffer that the first kernel reads: a GPU binds a buffer for either reading or writing.
    let mut case = Case::new();
    let [x, y] = ["x", "y"].map(|name| case.persistent(name, 64));
    let t = case.transient("t", 64);
    case.push(Map::binary(64, |a, b| a + b), &[x, y, t]);
    case.push(Map::flat(64, Activation::tanh().forward.clone()), &[t, x]);
    case.check(&Rewrite::ALL, &["map", "map"]);
}

/// The input of the first kernel is overwritten before the second runs, so the first must not run later.
#[test]
fn an_input_that_changes_between() {
    let mut case = Case::new();
    let [x, y, z] = ["x", "y", "z"].map(|name| case.persistent(name, 64));
    let t = case.transient("t", 64);
    case.push(Map::binary(64, |a, b| a + b), &[x, y, t]);
    case.push(Map::flat(64, Activation::tanh().forward.clone()), &[z, x]);
    case.push(Map::binary(64, |a, b| a * b), &[t, y, z]);
    case.check(&Rewrite::ALL, &["map", "map", "map"]);
    // The same with a kernel in between that does not overwrite it.
    let mut case = Case::new();
    let [x, y, z, other] = ["x", "y", "z", "other"].map(|name| case.persistent(name, 64));
    let t = case.transient("t", 64);
    case.push(Map::binary(64, |a, b| a + b), &[x, y, t]);
    case.push(Map::flat(64, Activation::tanh().forward.clone()), &[x, other]);
    case.push(Map::binary(64, |a, b| a * b), &[t, other, z]);
    case.check(&Rewrite::ALL, &["map", "map"]);
}

/// If the product ran in the place of the second kernel, its transient input, which is larger than its result, would live longer.
#[test]
fn large_inputs_are_not_kept() {
    for (is_between, expected) in [(false, &["map", "matmul"][..]), (true, &["map", "matmul", "map", "map"])] {
        let mut case = Case::new();
        let [x, w, y, z] = [("x", 100), ("w", 140), ("y", 35), ("z", 35)].map(|(name, len)| case.persistent(name, len));
        let [a, product] = [("a", 100), ("product", 35)].map(|(name, len)| case.transient(name, len));
        case.push(Map::flat(100, Activation::tanh().forward.clone()), &[x, a]);
        case.push(
            Matmul { n_batch: 1, m: 5, n: 7, k: 20, transpose: Transpose::B, epilogue: Epilogue::none() },
            &[a, w, product],
        );
        if is_between {
            case.push(Map::flat(35, Activation::relu().forward.clone()), &[w.slice(0..35), z]);
        }
        case.push(Map::flat(35, Activation::relu().forward.clone()), &[product, y]);
        case.check(&Rewrite::ALL, expected);
    }
}

/// The result overwrites a value that no later kernel reads, and later kernels read the result from there.
#[test]
fn the_last_to_read_writes_in_place() {
    let mut case = Case::new();
    let [x, skip, y] = ["x", "skip", "y"].map(|name| case.persistent(name, 100));
    let [a, b, c] = ["a", "b", "c"].map(|name| case.transient(name, 100));
    case.push(Map::flat(100, Activation::tanh().forward.clone()), &[x, a]);
    // The value is the second operand.
    case.push(Map::binary(100, |a, b| a + b), &[skip, a, b]);
    case.push(Map::flat(100, Activation::gelu().grad()), &[b, x, c]);
    // Without an operand.
    let d = case.transient("d", 100);
    case.push(Map::flat(100, Activation::relu().forward.clone()), &[c, d]);
    case.push(Map::binary(100, |a, b| a * b), &[d, x, y]);
    case.check(&[Rewrite::InPlace], &["map", "map_in_place", "map_in_place", "map_in_place", "map"]);
    let transient_bytes = |program: &Program| program.plan().expect("in order").transient_bytes();
    let rewritten = case.program.rewritten(&[Rewrite::InPlace]);
    assert_eq!((transient_bytes(&case.program), transient_bytes(&rewritten)), (1024, 512), "{rewritten}");
}

/// Every condition that prevents writing in place, one at a time.
#[test]
fn what_is_not_put_in_place() {
    let [whole, half] = [64, 32];
    for (n, value_is_read_later, operand_is_value) in [(whole, true, false), (whole, false, true), (half, false, false)] {
        let mut case = Case::new();
        let [x, y] = ["x", "y"].map(|name| case.persistent(name, 64));
        let (a, b) = (case.transient("a", 64), case.transient("b", n));
        case.push(Map::flat(64, Activation::tanh().forward.clone()), &[x, a]);
        let operand = if operand_is_value { a } else { x };
        case.push(Map::binary(n, |a, b| a + b), &[a.slice(0..n), operand.slice(0..n), b]);
        case.push(Map::flat(n, Activation::tanh().forward.clone()), &[if value_is_read_later { a } else { b }, y.slice(0..n)]);
        case.check(&[Rewrite::InPlace], &["map"; 3]);
    }
}

#[test]
fn a_rewritten_program_is_its_own() {
    let mut case = Case::new();
    let [x, y] = ["x", "y"].map(|name| case.persistent(name, 64));
    let t = case.transient("t", 64);
    case.push(Map::binary(64, |a, b| a + b), &[x, x, t]);
    case.push(Map::flat(64, Activation::relu().forward.clone()), &[t, y]);
    let mut rewritten = case.program.rewritten(&Rewrite::ALL);
    let error = rewritten.push(Map::flat(64, Activation::relu().forward.clone()), &[t, y]).expect_err("a slice of the other");
    assert!(matches!(error, brisk_program::Error::ForeignSlice { .. }), "{error}");
    assert_eq!(case.program.n_kernels(), 2, "the first is as it was");
    assert_eq!(case.program.to_string().lines().count(), 3, "one line for the program and one per kernel");
}
