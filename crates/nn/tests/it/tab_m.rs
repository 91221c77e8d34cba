//! Ensembles as one network, and embeddings of numbers, against the same formulas one number at a time.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{Graph, Mode, Persistent};
use brisk_nn::{Adapters, CategoricalColumn, Error, MeanOf, NumberEmbedding, Parameters, ParametersBuilder, TabM, TabMConfig};

const N_ROWS: usize = 3;

/// Numbers that a column becomes.
const DIM: usize = 3;

/// The edges of the bins of the columns.
fn edges() -> Vec<Vec<f32>> {
    vec![vec![-1.0, 0.0, 0.5, 2.0], vec![0.0, 1.0]]
}

fn config(mean_of: MeanOf, n_outputs: usize) -> TabMConfig {
    TabMConfig {
        n_inputs: 2,
        numbers: NumberEmbedding::PiecewiseLinear { edges: edges(), dim: DIM },
        n_members: 4,
        adapters: Adapters::First,
        hidden: vec![5, 6],
        dropout: 0.0,
        n_outputs,
        mean_of,
    }
}

const X: [f32; 2 * N_ROWS] = [-1.5, 0.25, 0.2, 3.0, 2.5, -1.0];
const CODES: [u32; N_ROWS] = [1, 0, 2];

/// The values of a parameter.
fn values(params: &Parameters, all: &[f32], name: &str) -> Vec<f64> {
    let entry = params.entries().iter().find(|entry| entry.name == name).unwrap_or_else(|| panic!("no {name}"));
    all[entry.range.clone()].iter().map(|&value| f64::from(value)).collect()
}

/// The outputs of each member for each row.
type Outputs = Vec<Vec<Vec<f64>>>;

/// These, by the formulas of the papers.
fn members(params: &Parameters, all: &[f32], config: &TabMConfig) -> Outputs {
    let of = |name: &str| values(params, all, name);
    let (dim, edges) = (DIM, edges());
    let [weight, bias, pieces] = ["weight", "bias", "pieces"].map(|name| of(&format!("numbers.{name}")));
    let codes = of("embeddings.0.weight");
    let scales = [of("scales.0"), of("scales.1")];
    let row = |row: usize| {
        let mut embedded = Vec::new();
        for col in 0..2 {
            let x = f64::from(X[row * 2 + col]);
            let edges = &edges[col];
            let n_own = edges.len() - 1;
            let component = |bin: usize| {
                let [a, b] = [edges[bin], edges[bin + 1]].map(f64::from);
                let y = (x - a) / (b - a);
                let y = if bin == 0 { y } else { y.max(0.0) };
                if bin + 1 == n_own { y } else { y.min(1.0) }
            };
            // Three bins; the only one of the second column is the last.
            let encoded: Vec<f64> = if n_own == 3 { (0..3).map(component).collect() } else { vec![0.0, 0.0, component(0)] };
            for i in 0..dim {
                let of_pieces: f64 = (0..3).map(|bin| encoded[bin] * pieces[(col * 3 + bin) * dim + i]).sum();
                embedded.push(weight[col * dim + i] * x + bias[col * dim + i] + of_pieces);
            }
        }
        let code = CODES[row] as usize;
        (embedded, codes[2 * code..2 * code + 2].to_vec())
    };
    let layer = |x: &[f64], weight: &[f64], scale: &[f64], bias: &[f64]| -> Vec<f64> {
        let sum = |out: usize| x.iter().zip(&weight[out * x.len()..]).map(|(x, w)| x * w).sum::<f64>();
        (0..bias.len()).map(|out| (scale[out] * sum(out) + bias[out]).max(0.0)).collect()
    };
    let member = |member: usize| {
        let of_row = |r: usize| {
            let (numbers, category) = row(r);
            let scaled = |x: &[f64], scales: &[f64]| -> Vec<f64> {
                x.iter().zip(&scales[member * x.len()..]).map(|(x, scale)| x * scale).collect()
            };
            let mut h = [scaled(&numbers, &scales[0]), scaled(&category, &scales[1])].concat();
            for i in 0..config.hidden.len() {
                let of_layer = |part: &str| of(&format!("hidden.{i}.{part}"));
                let of_member = |part: &str, len: usize| of_layer(part)[member * len..][..len].to_vec();
                let width = config.hidden[i];
                if config.adapters == Adapters::First {
                    h = layer(&h, &of_layer("weight"), &vec![1.0; width], &of_layer("bias"));
                    continue;
                }
                if i > 0 {
                    h = scaled(&h, &of_layer("scale_in"));
                }
                h = layer(&h, &of_layer("weight"), &of_member("scale_out", width), &of_member("bias", width));
            }
            let (weight, bias) = (of("head.weight"), of("head.bias"));
            let n = config.n_outputs;
            let output = |out: usize| {
                let products = h.iter().enumerate().map(|(i, h)| h * weight[(member * h_len(config) + i) * n + out]);
                bias[member * n + out] + products.sum::<f64>()
            };
            (0..n).map(output).collect()
        };
        (0..N_ROWS).map(of_row).collect()
    };
    (0..config.n_members).map(member).collect()
}

fn h_len(config: &TabMConfig) -> usize {
    config.hidden[config.hidden.len() - 1]
}

/// The outputs of the model in a graph of this mode, and those of its members.
fn outputs(config: &TabMConfig, mode: Mode) -> Result<(Vec<f32>, Outputs), Error> {
    let mut builder = ParametersBuilder::new();
    let model = TabM::new(&mut builder, config, &[CategoricalColumn { n_codes: 3, dim: 2 }]);
    let params = builder.build(5);
    let device = Device::cpu()?;
    params.write_initial(&device)?;
    // The pieces start as zeros, and scales as ones.
    let starts_alike = |name: &str| name == "numbers.pieces" || name.starts_with("hidden.") && !name.ends_with("weight");
    for entry in params.entries().iter().filter(|entry| starts_alike(&entry.name)) {
        let drawn: Vec<f32> = (0..entry.range.len()).map(|i| (i as f32 * 0.37).sin()).collect();
        device.write_at(params.values(), entry.range.start, &drawn)?;
    }
    let all: Vec<f32> = device.read(params.values())?;
    let graph = if mode == Mode::Training { Graph::training("train") } else { Graph::inference("predict") };
    let codes = Persistent::new("codes", brisk_nn::tensor::DType::U32, N_ROWS);
    device.write(&codes, &CODES)?;
    let (x, codes) = (graph.constant("x", &X, &[N_ROWS, 2]), graph.tensor(&codes, &[N_ROWS, 1]));
    let result = model.forward(&params.bind(&graph).with_categories(&codes), &x);
    let y = Persistent::new("y", brisk_nn::tensor::DType::F32, result.n_elements());
    graph.store(&result, &Graph::state_buffer(), &y);
    graph.compile(&device)?.run(1)?;
    Ok((device.read(&y)?, members(&params, &all, config)))
}

#[track_caller]
fn check_close(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "as many numbers");
    let is_close = |(found, expected): (&f32, &f64)| (f64::from(*found) - expected).abs() < 1e-5 * (1.0 + expected.abs());
    assert!(found.iter().zip(expected).all(is_close), "{found:?}, expected {expected:?}");
}

#[test]
fn members_are_trained_on_their_own_outputs() -> Result<(), Error> {
    for adapters in [Adapters::First, Adapters::All] {
        let (found, members) = outputs(&TabMConfig { adapters, ..config(MeanOf::Softmaxes, 3) }, Mode::Training)?;
        check_close(&found, &members.concat().concat());
    }
    Ok(())
}

/// A number for each row and output.
fn each(n_outputs: usize, f: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    (0..N_ROWS * n_outputs).map(|i| f(i / n_outputs, i % n_outputs)).collect()
}

#[test]
fn the_ensemble_predicts_the_mean_of_its_members() -> Result<(), Error> {
    let n = 4.0;
    let (found, members) = outputs(&config(MeanOf::Outputs, 2), Mode::Inference)?;
    check_close(&found, &each(2, |row, out| members.iter().map(|of| of[row][out]).sum::<f64>() / n));

    let (found, members) = outputs(&config(MeanOf::Sigmoids, 1), Mode::Inference)?;
    let logit = |row: usize, _: usize| {
        let p = members.iter().map(|of| 1.0 / (1.0 + (-of[row][0]).exp())).sum::<f64>() / n;
        (p / (1.0 - p)).ln()
    };
    check_close(&found, &each(1, logit));

    let (found, members) = outputs(&config(MeanOf::Softmaxes, 3), Mode::Inference)?;
    let log_probability = |row: usize, out: usize| {
        let of = |of: &Vec<Vec<f64>>| of[row][out].exp() / of[row].iter().map(|x| x.exp()).sum::<f64>();
        (members.iter().map(of).sum::<f64>() / n).ln()
    };
    check_close(&found, &each(3, log_probability));
    Ok(())
}

#[test]
fn scales_are_drawn_once_for_each_feature_and_member() {
    let mut builder = ParametersBuilder::new();
    let plain = TabMConfig { numbers: NumberEmbedding::Plain, ..config(MeanOf::Outputs, 1) };
    TabM::new(&mut builder, &config(MeanOf::Outputs, 1), &[CategoricalColumn { n_codes: 3, dim: 2 }]);
    TabM::new(&mut ParametersBuilder::new(), &plain, &[]);
    let params = builder.build(5);
    let device = Device::cpu().expect("the CPU");
    params.write_initial(&device).expect("there is room");
    let all: Vec<f32> = device.read(params.values()).expect("it was written");
    for (name, len, n) in [("scales.0", 3, 8), ("scales.1", 2, 4)] {
        let scales = values(&params, &all, name);
        let runs: Vec<&[f64]> = scales.chunks(len).collect();
        assert!(runs.iter().all(|run| run.iter().all(|scale| *scale == run[0])), "{name}: {scales:?}");
        let mut different: Vec<f64> = runs.iter().map(|run| run[0]).collect();
        different.sort_by(f64::total_cmp);
        different.dedup();
        assert_eq!((runs.len(), different.len()), (n, n), "{name}: {scales:?}");
    }

    let mut builder = ParametersBuilder::new();
    TabM::new(&mut builder, &TabMConfig { n_members: 64, ..plain }, &[]);
    let params = builder.build(5);
    params.write_initial(&device).expect("there is room");
    let signs = values(&params, &device.read::<f32>(params.values()).expect("it was written"), "scales.0");
    let n_positive = signs.iter().filter(|sign| **sign == 1.0).count();
    assert!(signs.iter().all(|sign| sign.abs() == 1.0) && (40..90).contains(&n_positive), "{n_positive} of {}", signs.len());
}

#[test]
fn another_number_of_columns_is_refused() {
    let mut builder = ParametersBuilder::new();
    let model = TabM::new(&mut builder, &config(MeanOf::Outputs, 1), &[]);
    let graph = Graph::inference("predict");
    let x = graph.constant("x", &[0.0; 9], &[3, 3]);
    model.forward(&builder.build(0).bind(&graph), &x);
    let error = graph.check().expect_err("the model takes two columns").to_string();
    assert!(error.contains("piecewise_linear: `x` has shape [3, 3], expected [n_rows, 2]"), "{error}");
}
