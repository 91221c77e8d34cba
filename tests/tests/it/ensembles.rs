//! Ensembles as one network: the mean of the members' losses is trained, and their mean prediction is evaluated.

use brisk_loader::Rows;
use brisk_nn::tensor::{Mode, Tensor};
use brisk_nn::{
    Activation, Adapters, Bound, Linear, MeanOf, Mlp, MlpConfig, Module, NumberEmbedding, ParametersBuilder, RealMlp,
    RealMlpConfig, SmoothClip, TabM, TabMConfig,
};
use brisk_tabular::{Columns, Network, Preprocessing, Recipe, Scaling, TabularModel, Target};
use brisk_train::{Binary, Classification, DataParallelConfig, Error, Model, Regression, Task, Trainer, run_threads};

use crate::gpu::{cpu, gpu};
use crate::run::noise;

/// Members that all give the outputs of one network.
#[derive(Debug)]
struct Alike(Mlp, usize);

impl Module for Alike {
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let outputs = self.0.forward(params, x);
        if x.graph().mode() == Mode::Inference {
            return outputs;
        }
        let [n_rows, n_outputs] = [outputs.shape()[0], outputs.shape()[1]];
        outputs.reshape(&[1, n_rows, n_outputs]).expand(&[self.1, n_rows, n_outputs])
    }
}

fn rows(n: usize, n_classes: usize) -> Rows {
    let x: Vec<f32> = (0..3 * n).map(|i| noise(i / 3, i % 3)).collect();
    let label = |row: &[f32]| ((row[0] * row[1] + 0.5 * row[2]).abs() * 4.0) as usize % n_classes;
    let labels = x.chunks(3).map(|row| label(row) as f32).collect::<Vec<_>>();
    Rows::new(x, labels, 3).expect("rows")
}

/// The losses of each epoch of an ensemble of `n_members` members that are alike.
fn losses(task: &dyn Task, n_members: usize, n_outputs: usize, weights: bool) -> Result<Vec<f64>, Error> {
    // The last batch of an epoch is padded.
    let (train, valid) = (rows(150, n_outputs.max(2)), rows(60, n_outputs.max(2)));
    let train = if weights {
        train.with_weights((0..150).map(|row| (row % 3) as f32).collect::<Vec<_>>()).expect("weights")
    } else {
        train
    };
    let sizes = MlpConfig { n_inputs: 3, hidden: vec![8], n_outputs, activation: Activation::relu() };
    let mut model = Model::new(3, |params| Alike(Mlp::new(params, &sizes), n_members));
    let report = Trainer::new(&cpu(2)).batch_rows(32).max_epochs(3).learning_rate(0.02).fit(&mut model, task, &train, &valid)?;
    Ok(report.history.iter().flat_map(|epoch| [epoch.get("train_loss"), epoch.get("valid_loss")]).flatten().collect())
}

#[test]
fn members_that_are_alike_train_as_one_does() -> Result<(), Error> {
    let tasks: [(Box<dyn Task>, usize); 3] =
        [(Box::new(Regression::mse()), 1), (Box::new(Binary::new()), 1), (Box::new(Classification::of(3)), 3)];
    for (task, n_outputs) in &tasks {
        for weights in [false, true] {
            let (one, several) = (losses(&**task, 1, *n_outputs, weights)?, losses(&**task, 5, *n_outputs, weights)?);
            assert_eq!(one.len(), 6);
            let is_close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-4 * (1.0 + a.abs());
            assert!(one.iter().zip(&several).all(is_close), "{task:?}: {several:?}, expected {one:?}");
        }
    }
    Ok(())
}

/// The shape of a loss's rows is that of all members; a model of one number per row is still refused.
#[test]
fn only_members_of_the_right_shape_are_trained() {
    #[derive(Debug)]
    struct Wrong(Linear);
    impl Module for Wrong {
        fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
            let outputs = self.0.forward(params, x);
            outputs.reshape(&[outputs.shape()[0], 1, 2])
        }
    }
    let mut model = Model::new(3, |params| Wrong(Linear::new(params, "fc", 3, 2, Activation::identity())));
    let task = Classification::of(2);
    let fitted = Trainer::new(&cpu(1)).max_epochs(1).fit(&mut model, &task, &rows(40, 2), &rows(20, 2));
    let error = fitted.expect_err("the outputs are of no ensemble").to_string();
    assert!(error.contains("the model's output") && error.contains("1, 2]"), "{error}");
}

fn ensemble(params: &mut ParametersBuilder, adapters: Adapters) -> TabM {
    let config = TabMConfig {
        n_inputs: 3,
        numbers: NumberEmbedding::PiecewiseLinear { edges: vec![vec![-1.0, -0.5, 0.0, 0.5, 1.0]; 3], dim: 4 },
        n_members: 4,
        adapters,
        hidden: vec![16],
        dropout: 0.1,
        n_outputs: 1,
        mean_of: MeanOf::Outputs,
    };
    TabM::new(params, &config, &[])
}

#[test]
fn devices_and_replicas_train_the_same_ensemble() -> Result<(), Error> {
    let (train, valid) = (rows(128, 3), rows(60, 3));
    let task = Regression::mse();
    for adapters in [Adapters::First, Adapters::All] {
        train_the_same(&|params| ensemble(params, adapters), &task, &train, &valid)?;
    }
    train_the_same(&real_mlps, &task, &train, &valid)
}

fn real_mlps(params: &mut ParametersBuilder) -> RealMlp {
    let config = RealMlpConfig {
        scaling: SmoothClip { centers: vec![0.0; 3], factors: vec![1.0; 3] },
        numbers: NumberEmbedding::Pbld { n_frequencies: 4, std: 0.1, dim: 3 },
        n_members: 3,
        hidden: vec![16, 16],
        activation: Activation::mish(),
        dropout: 0.15,
        n_outputs: 1,
        mean_of: MeanOf::Outputs,
    };
    RealMlp::new(params, &config, &[])
}

fn train_the_same<M: Module + 'static>(
    build: &(dyn Fn(&mut ParametersBuilder) -> M + Sync),
    task: &(dyn Task + Sync),
    train: &Rows,
    valid: &Rows,
) -> Result<(), Error> {
    let run = |trainer: Trainer<'_>| -> Result<f64, Error> {
        let mut model = Model::new(3, build);
        let report = trainer.batch_rows(32).max_epochs(4).learning_rate(0.01).fit(&mut model, task, train, valid)?;
        Ok(report.history.last().and_then(|epoch| epoch.get("train_loss")).expect("a loss"))
    };
    let expected = run(Trainer::new(&cpu(1)))?;
    let check =
        |what: &str, found: f64| assert!((found - expected).abs() < 2e-3 * expected, "{what}: {found}, expected {expected}");
    for found in run_threads(2, &DataParallelConfig::default(), |replica| run(Trainer::new(&cpu(1)).replicas(replica)))? {
        check("two replicas", found);
    }
    if let Some(device) = gpu() {
        check("a GPU", run(Trainer::new(&device))?);
    }
    Ok(())
}

#[test]
fn a_model_folder_keeps_the_ensemble() -> Result<(), brisk_tabular::Error> {
    let all = rows(400, 4);
    let columns = Columns::numbers(["a", "b", "c"]);
    let preprocessing = Preprocessing::fit(&columns, &all, Scaling::Standard)?;
    let target = Target::numbers("y", "train", &all)?;
    let edges = Network::quantile_edges(&preprocessing.over(&columns, &all)?.to_rows("train")?, 8);
    assert!(edges.len() == 3 && edges.iter().all(|edges| edges.len() == 9), "{edges:?}");
    let repeated = Rows::new([vec![0.0; 90], (1..=10).map(|i| i as f32).collect()].concat(), vec![0.0; 100], 1).expect("rows");
    assert_eq!(Network::quantile_edges(&repeated, 4), [[0.0, 2.0, 5.0, 8.0, 10.0]], "more than half of the values are 0");
    let numbers = NumberEmbedding::PiecewiseLinear { edges, dim: 4 };
    let (hidden, category_dim) = (vec![16], 8);
    let network = Network::TabM { n_members: 4, adapters: Adapters::All, hidden, dropout: 0.0, numbers, category_dim };
    let model = TabularModel::new(1, preprocessing, target, network);
    let changes = [
        ("/network/numbers/edges/0/1", serde_json::json!(-1e6)),
        ("/network/numbers/edges", serde_json::json!([[0.0, 1.0]])),
        ("/network/numbers/dim", serde_json::json!(0)),
        ("/network/dropout", serde_json::json!(1.0)),
        ("/network/n_members", serde_json::json!(0)),
        ("/network/n_members", serde_json::json!(1 << 20)),
    ];
    check_folder(model, &columns, &all, &changes)
}

#[test]
fn a_model_folder_keeps_real_mlps() -> Result<(), brisk_tabular::Error> {
    let all = rows(400, 4);
    let columns = Columns::numbers(["a", "b", "c"]);
    let preprocessing = Preprocessing::fit(&columns, &all, Scaling::Standard)?;
    let target = Target::numbers("y", "train", &all)?;
    let recipe = Recipe::real_mlp(&preprocessing.over(&columns, &all)?.to_rows("train")?, &target);
    let changes = [
        ("/network/scaling/centers", serde_json::json!([0.0, 0.0])),
        ("/network/scaling/factors/0", serde_json::json!(1e39)),
        ("/network/numbers/std", serde_json::json!(0.0)),
        ("/network/numbers/dim", serde_json::json!(1)),
        ("/network/hidden/1", serde_json::json!(0)),
    ];
    check_folder(TabularModel::new(1, preprocessing, target, recipe.network), &columns, &all, &changes)
}

/// Trains the model a little, saves and loads it, and checks that a folder with these changes is refused.
fn check_folder(
    mut model: TabularModel,
    columns: &Columns,
    all: &Rows,
    changes: &[(&str, serde_json::Value)],
) -> Result<(), brisk_tabular::Error> {
    let (train, task) = (model.rows(columns, all)?, model.task());
    Trainer::new(&cpu(2)).batch_rows(32).max_epochs(10).learning_rate(0.01).fit(model.model_mut(), &*task, &train, &train)?;
    let predicted = model.predictor(&cpu(1))?.predict(columns, all)?;
    let folder = tempfile::tempdir().expect("a temporary folder");
    model.save(folder.path())?;
    let loaded = TabularModel::load(folder.path())?;
    assert_eq!(loaded.network(), model.network(), "the same network");
    assert_eq!(loaded.predictor(&cpu(1))?.predict(columns, all)?.numbers(), predicted.numbers(), "the same predictions");

    let path = folder.path().join("model.json");
    let text = std::fs::read_to_string(&path).expect("it was written");
    let saved: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    for (pointer, value) in changes {
        let mut changed = saved.clone();
        *changed.pointer_mut(pointer).expect("it is there") = value.clone();
        std::fs::write(&path, format!("{changed:#}\n")).expect("it can be written");
        let error = TabularModel::load(folder.path()).expect_err(pointer).to_string();
        assert!(error.contains("network"), "{pointer}: {error}");
    }
    Ok(())
}
