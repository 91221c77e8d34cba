//! A training step of a small network, as a program.

use brisk_program::kernels::{
    Activation, Advance, DType, Epilogue, MapReduce, Matmul, MseLoss, Reducer, Reduction, STATE_LEN, StoreRows, Transpose, Update,
};
use brisk_program::{Device, Error, Persistent, Program};

use crate::random::Random;
use crate::toy::Descent;

#[derive(Debug)]
pub(crate) struct Mlp {
    pub(crate) program: Program,
    pub(crate) weights: [Persistent; 2],
    pub(crate) losses: Persistent,
    pub(crate) state: Persistent,
    start: Vec<(Persistent, Vec<f32>)>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) n_rows: usize,
    pub(crate) n_inputs: usize,
    pub(crate) n_hidden: usize,
    pub(crate) n_steps: usize,
}

impl Mlp {
    /// `y = w2 relu(w1 x + b1)`, mean squared error, momentum; each step's loss is stored.
    pub(crate) fn new(sizes: Sizes) -> Result<Self, Error> {
        let Sizes { n_rows, n_inputs, n_hidden, n_steps } = sizes;
        let f32s = |name: &str, len| Persistent::new(name, DType::F32, len);
        let (x, target, weight) = (f32s("x", n_rows * n_inputs), f32s("target", n_rows), f32s("weight", n_rows));
        let (w1, b1, w2) = (f32s("w1", n_hidden * n_inputs), f32s("b1", n_hidden), f32s("w2", n_hidden));
        let (u1, u2) = (f32s("u1", n_hidden * n_inputs), f32s("u2", n_hidden));
        let (lr, one, losses) = (f32s("lr", 1), f32s("one", 1), f32s("losses", 2 * n_steps));
        let state = Persistent::new("state", DType::U32, STATE_LEN);

        let mut p = Program::new("mlp");
        let [x_, target_, weight_, w1_, b1_, w2_] = [&x, &target, &weight, &w1, &b1, &w2].map(|b| p.persistent(b));
        let [u1_, u2_, lr_, one_, losses_, state_] = [&u1, &u2, &lr, &one, &losses, &state].map(|b| p.persistent(b));
        let h = p.transient("h", DType::F32, n_rows * n_hidden);
        let y = p.transient("y", DType::F32, n_rows);
        let loss = p.transient("loss", DType::F32, 2);
        let (dy, dh) = (p.transient("dy", DType::F32, n_rows), p.transient("dh", DType::F32, n_rows * n_hidden));
        let (dw1, dw2) = (p.transient("dw1", DType::F32, n_hidden * n_inputs), p.transient("dw2", DType::F32, n_hidden));
        let db1 = p.transient("db1", DType::F32, n_hidden);

        let relu = Activation::relu();
        let matmul = |m, n, k, transpose, epilogue| Matmul { n_batch: 1, m, n, k, transpose, epilogue };
        p.push(matmul(n_rows, n_hidden, n_inputs, Transpose::B, Epilogue::bias(&relu)), &[x_, w1_, b1_, h])?;
        p.push(matmul(n_rows, 1, n_hidden, Transpose::B, Epilogue::none()), &[h, w2_, y])?;
        let mse = MseLoss { n_rows, n_cols: 1, reduction: Reduction::Mean };
        p.push(mse.loss(), &[y, target_, weight_, loss])?;
        p.push(mse.grad(), &[one_, y, target_, weight_, loss, dy])?;
        p.push(matmul(1, n_hidden, n_rows, Transpose::A, Epilogue::none()), &[dy, h, dw2])?;
        p.push(
            matmul(
                n_rows,
                n_hidden,
                1,
                Transpose::None,
                Epilogue::with_matrix(relu.grad_from_output().expect("it follows from the output")),
            ),
            &[dy, w2_, h, dh],
        )?;
        p.push(matmul(n_hidden, n_inputs, n_rows, Transpose::A, Epilogue::none()), &[dh, x_, dw1])?;
        p.push(MapReduce::of(Reducer::Sum, &[n_rows, n_hidden], &[0]), &[dh, db1])?;
        let sgd = |n| Update::new("descent", Descent, n);
        p.push(sgd(n_hidden * n_inputs), &[dw1, lr_, state_, w1_, u1_])?;
        p.push(sgd(n_hidden), &[dw2, lr_, state_, w2_, u2_])?;
        p.push(StoreRows { n: 1, n_cols: 2, n_total: n_steps }, &[loss, state_, losses_])?;
        p.push(Advance, &[state_])?;

        let mut random = Random::new(7);
        let inputs = random.floats(n_rows * n_inputs);
        let sums = inputs.chunks(n_inputs).map(|row| row.iter().sum::<f32>().abs()).collect();
        let scaled = |values: Vec<f32>| values.into_iter().map(|value| 0.3 * value).collect();
        let start = vec![
            (x, inputs),
            (target, sums),
            (weight, vec![1.0; n_rows]),
            (w1.clone(), scaled(random.floats(n_hidden * n_inputs))),
            (b1, scaled(random.floats(n_hidden))),
            (w2.clone(), scaled(random.floats(n_hidden))),
            (u1, vec![0.0; n_hidden * n_inputs]),
            (u2, vec![0.0; n_hidden]),
            (lr, vec![0.05]),
            (one, vec![1.0]),
            (losses.clone(), vec![0.0; 2 * n_steps]),
        ];
        Ok(Self { program: p, weights: [w1, w2], losses, state, start })
    }

    /// Resets everything to the initial values.
    pub(crate) fn reset(&self, device: &Device) -> Result<(), Error> {
        device.write(&self.state, &[0_u32; STATE_LEN])?;
        self.start.iter().try_for_each(|(persistent, values)| device.write(persistent, values))
    }

    /// Trains from the initial values; returns the weights and the loss of each step.
    pub(crate) fn train(&self, device: &Device, n: usize) -> Result<(Vec<f32>, Vec<f32>), Error> {
        let executable = device.compile(&self.program)?;
        self.reset(device)?;
        executable.run(n)?;
        let mut weights = device.read::<f32>(&self.weights[0])?;
        weights.extend(device.read::<f32>(&self.weights[1])?);
        let losses = device.read::<f32>(&self.losses)?.chunks(2).map(|loss| loss[0]).collect();
        Ok((weights, losses))
    }
}
