//! Samples of the kernels whose WGSL is generated from an expression.

use brisk_kernels::expr::Expr;
use brisk_kernels::*;

pub(crate) const OPS: [Reducer; 5] = [Reducer::Sum, Reducer::Mean, Reducer::Max, Reducer::Min, Reducer::Norm];

pub(crate) fn x(i: usize) -> Expr {
    Expr::input(i)
}

pub(crate) fn map(shape: &[usize], inputs: &[(&[usize], DType)], outputs: &[(Expr, DType)]) -> Map {
    Map {
        shape: shape.to_vec(),
        inputs: inputs.iter().map(|&(shape, dtype)| MapInput::new(shape, dtype)).collect(),
        outputs: outputs.iter().map(|(expr, dtype)| MapOutput { expr: expr.clone(), dtype: *dtype }).collect(),
    }
}

/// One sample of each form of the module, for the tests of the WGSL.
pub(crate) fn maps() -> Vec<Box<dyn Kernel>> {
    let (f32, f16, bf16) = (DType::F32, DType::F16, DType::Bf16);
    let dense = every_function().substitute(&[x(0), x(1)]);
    let mut samples: Vec<Box<dyn Kernel>> = vec![Box::new(Map::flat(7, dense.clone())), Box::new(Map::flat(64, dense))];
    for (rows, cols) in [(8, 12), (3, 5)] {
        for output in [f32, f16, bf16] {
            let inputs: [(&[usize], DType); 4] = [(&[rows, 2, cols], f32), (&[cols], f16), (&[rows, 1, 1], bf16), (&[1], f16)];
            samples.push(Box::new(map(&[rows, 2, cols], &inputs, &[(x(0) * x(1) + x(2) - x(3), output), (x(0).relu(), f32)])));
        }
    }
    for (n, dtype) in [(64, f32), (7, f32), (64, f16), (7, bf16)] {
        let inputs: [(&[usize], DType); 3] = [(&[n], f32), (&[n], dtype), (&[1], f16)];
        samples.push(Box::new(MapInPlace { map: map(&[n], &inputs, &[(x(0) * x(1) - x(2), dtype)]), input: 1 }));
    }
    for shape in [[8, 12, 4], [3, 5, 7]] {
        for output in [f32, f16, bf16] {
            let permuted = |dtype| MapInput::new(&shape, dtype).permuted(&[2, 0, 1]).and_then(|input| input.narrowed(1, 1..3));
            let inputs: Vec<MapInput> = [f32, f16, bf16].map(|dtype| permuted(dtype).expect("elements are left")).into();
            let outputs = vec![MapOutput { expr: x(0) + x(1) + x(2), dtype: output }];
            samples.push(Box::new(Map { shape: inputs[0].shape.clone(), inputs, outputs }));
        }
    }
    samples
}

/// An expression of two inputs that uses every function.
pub(crate) fn every_function() -> Expr {
    let [a, b] = [x(0), x(1)];
    let unary =
        [a.abs(), a.sign(), a.exp(), a.expm1(), a.log(), a.log1p(), a.sqrt(), a.rsqrt(), a.recip(), a.tanh(), a.sigmoid()];
    let more = [a.erf(), a.sin(), a.cos(), a.floor(), a.is_finite(), -&a, &a - &b, &a / &b, a.max(&b), a.min(&b), a.powf(&b)];
    let chosen = [a.lt(&b), a.le(&b), a.eq(&b), a.ne(&b), a.select(&b, 1.0), a.lt(&b).select(f32::INFINITY, f32::from_bits(1))];
    unary.into_iter().chain(more).chain(chosen).reduce(|sum, term| sum + term).expect("there are some")
}

/// One sample of each kind of module, for the tests of the WGSL.
pub(crate) fn reductions() -> Vec<Box<dyn Kernel>> {
    let mut samples: Vec<Box<dyn Kernel>> = Vec::new();
    for op in OPS {
        for dims in [&[0, 1, 2][..], &[2], &[1], &[0, 2], &[]] {
            let mut reduction = MapReduce::new(op, (x(0) - x(1)).exp(), &[&[3, 5, 70], &[5, 1]], dims).expect("they broadcast");
            samples.push(Box::new(reduction.clone()));
            reduction.inputs[0].dtype = DType::F16;
            reduction.inputs[1].dtype = DType::Bf16;
            samples.push(Box::new(reduction));
        }
    }
    samples.push(Box::new(MapReduce::new(Reducer::Sum, x(0), &[&[500_000]], &[0]).expect("it is right")));
    samples
}
