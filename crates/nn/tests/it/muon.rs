//! Muon compared with PyTorch's, step by step, and the properties of its updates.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_nn::{Error, Init, Momentum, Muon, MuonNorm, MuonScale, Optimizer, Parameters, ParametersBuilder, StepInputs};

/// Two matrices of one shape, between them one with more rows than columns, and a bias that no optimizer updates.
fn parameters() -> Parameters {
    let mut builder = ParametersBuilder::new();
    for (i, shape) in [[3, 4], [4, 2], [3, 4]].iter().enumerate() {
        builder.add(format!("matrix.{i}"), shape, Init::Constant(0.0));
    }
    builder.add("bias", &[5], Init::Constant(0.5));
    let mut params = builder.build(0);
    for (i, id) in matrices(&params).into_iter().enumerate() {
        let start = values(params.entry(id).range.len(), i);
        params.set_initial(id, &start).expect("as many as there are");
    }
    params
}

fn matrices(params: &Parameters) -> Vec<brisk_nn::ParameterId> {
    params.ids_where(|entry| entry.shape.len() == 2)
}

/// Numbers without a pattern, the same as in the program that computed the expected values.
fn values(n: usize, k: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * i * 37 + i * k * 11 + k * 53 + 7) % 101) as f32 / 50.0 - 1.0).collect()
}

/// The parameters after three steps with a rate of 0.1.
fn after_three_steps(optimizer: &Muon, params: &Parameters) -> Result<Vec<f32>, Error> {
    let device = Device::cpu()?;
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    let graph = Graph::inference("step");
    optimizer.record(&graph, params, &inputs);
    graph.advance(&inputs.state);
    let executable = graph.compile(&device)?;
    params.write_initial(&device)?;
    device.write(&inputs.lr, &[0.1_f32])?;
    for step in 0..3 {
        for (i, entry) in params.entries().iter().enumerate() {
            device.write_at(params.grads(), entry.range.start, &values(entry.range.len(), 10 + 3 * step + i))?;
        }
        executable.run(1)?;
    }
    Ok(device.read(params.values())?)
}

#[track_caller]
fn check(set: impl Fn(Muon) -> Muon, tolerance: f32, expected: [&[f32]; 3]) {
    let params = parameters();
    let muon = set(Muon::new(&params, &matrices(&params)).expect("matrices"));
    let found = after_three_steps(&muon, &params).expect("the steps can be recorded and run");
    for (entry, expected) in params.entries().iter().zip(expected) {
        let found = &found[entry.range.clone()];
        let are_close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance);
        assert!(are_close && found.len() == expected.len(), "`{}` is {found:?}, expected {expected:?}", entry.name);
    }
    let bias = params.entries()[3].range.clone();
    assert_eq!(found[bias], [0.5; 5], "what is not Muon's");
}

/// The tolerance of f32 over five steps, each of which may double an error.
const F32: f32 = 2e-5;

// The algorithm of torch.optim.Muon (2.15), in f64 instead of bf16.

#[test]
fn it_is_pytorchs_by_default() {
    check(
        |muon| muon,
        F32,
        [
            &[
                -0.809607, -0.2257964, 0.0455607, -0.4131973, 0.8564539, -0.537844, -0.2926935, -1.1085926, -0.0819496,
                0.4081755, 0.2488397, -0.2963087,
            ],
            &[0.0226754, -0.7179102, -0.626883, -0.688794, 0.8691263, -0.4350779, -0.0448825, -0.1589884],
            &[
                -0.7685025, 0.4001047, -1.0342321, -0.8550353, 0.7285368, -0.0756419, 0.1571062, 0.2789398, -0.3056638,
                0.3920786, 0.8698814, 0.8666458,
            ],
        ],
    );
}

/// The results of `torch.optim.Muon` itself, whose orthogonalisation rounds to 8 bits.
#[test]
fn it_is_pytorchs_own_result_within_bf16() {
    check(
        |muon| muon,
        4e-3,
        [
            &[-0.8112, -0.2275, 0.0469, -0.4127, 0.8574, -0.5373, -0.2957, -1.1077, -0.0786, 0.4098, 0.2508, -0.2975],
            &[0.0232, -0.7192, -0.6293, -0.6875, 0.8686, -0.4373, -0.0457, -0.1583],
            &[-0.7707, 0.3989, -1.0343, -0.8522, 0.728, -0.0754, 0.1604, 0.2762, -0.3071, 0.3912, 0.8692, 0.8691],
        ],
    );
}

#[test]
fn it_is_pytorchs_without_nesterov_and_decay_in_three_steps() {
    check(
        |muon| muon.momentum(0.6, Momentum::Heavy).weight_decay(0.0).newton_schulz(3, [3.4445, -4.7750, 2.0315]),
        F32,
        [
            &[
                -0.8708656, -0.2694292, 0.0700071, -0.4131511, 0.8978505, -0.5476308, -0.3385507, -1.1382533, -0.0566299,
                0.433563, 0.2500212, -0.3159707,
            ],
            &[0.0171927, -0.7241213, -0.6403646, -0.694378, 0.9155865, -0.4336051, -0.0431953, -0.1748442],
            &[
                -0.8062807, 0.426769, -1.0820009, -0.8906427, 0.7464954, -0.0645045, 0.146803, 0.2819387, -0.3010145, 0.4007077,
                0.9191608, 0.9179749,
            ],
        ],
    );
}

#[test]
fn its_scales_are_pytorchs() {
    check(
        |muon| muon.scale(MuonScale::MatchRmsAdamw),
        F32,
        [
            &[
                -0.8245171, -0.1601801, 0.0647986, -0.3166456, 0.8548994, -0.5295145, -0.3965235, -1.0023293, -0.0094927,
                0.4543599, 0.3440512, -0.2349594,
            ],
            &[0.145585, -0.8014927, -0.4834864, -0.5845003, 0.8025116, -0.4014014, -0.0961975, -0.3093944],
            &[
                -0.7498574, 0.4045572, -0.9725851, -0.8426884, 0.7105839, -0.1816234, 0.2025655, 0.2280118, -0.3434937,
                0.4595647, 0.8602704, 0.7541839,
            ],
        ],
    );
    check(
        |muon| muon.scale(MuonScale::SpectralUnclamped),
        F32,
        [
            &[
                -0.8129363, -0.2111449, 0.0498564, -0.3916382, 0.8561068, -0.5359841, -0.3158778, -1.084865, -0.0657706,
                0.4184881, 0.2700996, -0.28261,
            ],
            &[0.0226754, -0.7179102, -0.626883, -0.688794, 0.8691263, -0.4350779, -0.0448825, -0.1589884],
            &[
                -0.7643392, 0.4010989, -1.0204669, -0.8522783, 0.7245281, -0.0993066, 0.1672569, 0.267568, -0.3141109, 0.4071476,
                0.8677353, 0.8415341,
            ],
        ],
    );
}

/// A step with a rate of 0 sets the norm of a matrix to √n_rows, and has no other effect.
#[test]
fn norms_are_brought_to_the_root_of_the_rows() -> Result<(), Error> {
    let params = parameters();
    let muon = Muon::new(&params, &matrices(&params))?.norm(MuonNorm::SqrtRows);
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    let graph = Graph::inference("step");
    muon.record(&graph, &params, &inputs);
    let device = Device::cpu()?;
    let executable = graph.compile(&device)?;
    params.write_initial(&device)?;
    let values_after = |state: [u32; 4]| {
        device.write(&inputs.state, &state)?;
        executable.run(1)?;
        device.read::<f32>(params.values())
    };
    let before = values_after([0, 0, 1, 0])?;
    assert_eq!(before[params.entries()[0].range.clone()], values(12, 0), "a step that is skipped");
    let after = values_after([0; 4])?;
    for entry in &params.entries()[..3] {
        let (before, after) = (&before[entry.range.clone()], &after[entry.range.clone()]);
        let norm = |x: &[f32]| x.iter().map(|x| x * x).sum::<f32>().sqrt();
        let root = (entry.shape[0] as f32).sqrt();
        assert!((norm(after) - root).abs() < 1e-5, "`{}` has the norm {}", entry.name, norm(after));
        let factor = root / norm(before);
        assert!(before.iter().zip(after).all(|(a, b)| (a * factor - b).abs() < 1e-5), "one factor for all");
    }
    Ok(())
}

/// A filter `[n_out, height, width, n_in]` is a matrix of `n_out` rows, whatever the order of its columns.
#[test]
fn filters_are_matrices() -> Result<(), Error> {
    let step = |shape: &[usize]| {
        let mut builder = ParametersBuilder::new();
        let id = builder.add("weight", shape, Init::FanIn(8));
        let params = builder.build(3);
        after_three_steps(&Muon::new(&params, &[id])?, &params)
    };
    assert_eq!(step(&[4, 3, 3, 2])?, step(&[4, 18])?, "the same elements");
    Ok(())
}

/// The update of each step is nearly orthogonal: its rows have lengths near 1 and angles near 90 degrees.
#[test]
fn an_update_is_nearly_orthogonal() -> Result<(), Error> {
    for (n_rows, n_cols) in [(6, 40), (40, 6), (16, 16)] {
        let mut builder = ParametersBuilder::new();
        let id = builder.add("weight", &[n_rows, n_cols], Init::Constant(0.0));
        let params = builder.build(0);
        let muon = Muon::new(&params, &[id])?.scale(MuonScale::Plain).weight_decay(0.0);
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
        let graph = Graph::inference("step");
        muon.record(&graph, &params, &inputs);
        let device = Device::cpu()?;
        params.write_initial(&device)?;
        device.write(&inputs.lr, &[-1.0_f32])?;
        device.write_at(params.grads(), 0, &values(n_rows * n_cols, 1))?;
        graph.compile(&device)?.run(1)?;
        let update: Vec<f32> = device.read(params.values())?;
        let at = |row: usize, col: usize| f64::from(update[row * n_cols + col]);
        // x ↦ update · x preserves the lengths of the smaller side's unit vectors, within the precision of the polynomial.
        let n = n_rows.min(n_cols);
        let gram = |i: usize, j: usize| -> f64 {
            if n_rows <= n_cols {
                (0..n_cols).map(|k| at(i, k) * at(j, k)).sum()
            } else {
                (0..n_rows).map(|k| at(k, i) * at(k, j)).sum()
            }
        };
        let trace: f64 = (0..n).map(|i| gram(i, i)).sum();
        let off: f64 =
            (0..n).flat_map(|i| (0..n).filter(move |&j| j != i).map(move |j| (i, j))).map(|(i, j)| gram(i, j).powi(2)).sum();
        assert!((0.5..1.4).contains(&(trace / n as f64)), "{n_rows} x {n_cols}: squares of singular values mean {trace} / {n}");
        assert!(off.sqrt() < 0.35 * (n as f64).sqrt(), "{n_rows} x {n_cols}: {}", off.sqrt());
    }
    Ok(())
}

#[test]
fn what_is_no_matrix_is_refused() {
    let params = parameters();
    let refused = |ids: &[brisk_nn::ParameterId], message: &str| {
        let error = Muon::new(&params, ids).expect_err("not for Muon");
        assert_eq!(error.to_string(), message);
    };
    let bias = params.id_of("bias").expect("it is there");
    let all = matrices(&params);
    refused(&[bias], "muon: `parameter` has shape [5], expected a matrix for `bias`; leave it to another optimizer");
    refused(&[], "muon: `ids` has shape [0], expected parameters, each of them once");
    refused(&[all[0], all[1], all[0]], "muon: `ids` has shape [3], expected parameters, each of them once");
}

#[test]
fn its_state_is_its_momentum() -> Result<(), Error> {
    let params = parameters();
    let muon = Muon::new(&params, &matrices(&params))?;
    let names: Vec<_> = muon.state().into_iter().map(|(name, buffer)| (name, buffer.len())).collect();
    assert_eq!(names, [("muon.momentum".to_owned(), params.len())], "for checkpoints");
    Ok(())
}
