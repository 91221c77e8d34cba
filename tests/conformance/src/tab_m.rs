//! Ensembles for tables with embeddings of numbers and of categories: the outputs of all members in training, the gradients of
//! all parameters, and the prediction.

use anyhow::{Context, Result, bail};
use brisk_nn::{
    Activation, Adapters, CategoricalColumn, MeanOf, Module, ParametersBuilder, RealMlp, RealMlpConfig, TabM, TabMConfig,
};
use brisk_program::Device;
use brisk_tensor::{DType, Graph, Persistent};
use serde_json::{Value, from_value};

use crate::case::{Case, Outputs};
use crate::form::Form;

pub(crate) fn run(case: &Case, device: &Device, form: Form) -> Result<Option<Outputs>> {
    // Its layers round by themselves, or not at all.
    if !is_ensemble(case) || matches!(form, Form::Rounded(_)) {
        return Ok(None);
    }
    let x = case.tensor("in.x")?;
    let columns: Vec<[usize; 2]> = from_value(case.params["categories"].clone())?;
    let columns: Vec<CategoricalColumn> = columns.into_iter().map(|[n_codes, dim]| CategoricalColumn { n_codes, dim }).collect();
    let mut builder = ParametersBuilder::new();
    let model = model(case, x.shape[1], &mut builder, &columns)?;
    let mut params = builder.build(0);
    let entries = params.entries().to_vec();
    for entry in &entries {
        let id = params.id_of(&entry.name).with_context(|| format!("the model has no parameter `{}`", entry.name))?;
        let values = case.tensor(&format!("in.{}", entry.name))?;
        if values.shape != entry.shape {
            bail!("`{}` has the shape {:?} in the case, {:?} here", entry.name, values.shape, entry.shape);
        }
        params.set_initial(id, &values.floats)?;
    }
    params.write_initial(device)?;

    let mut outputs = Vec::new();
    for (graph, name) in [(Graph::training("tab_m"), "out.y"), (Graph::inference("tab_m"), "out.prediction")] {
        let features = graph.constant("x", &x.floats, &x.shape);
        let mut bound = params.bind(&graph);
        if !columns.is_empty() {
            let values = case.tensor("in.codes")?;
            let codes: Vec<u32> = values.floats.iter().map(|&code| code as u32).collect();
            bound = bound.with_categories(&graph.constant_codes("codes", &codes, &values.shape));
        }
        let y = graph.autocast(form.autocast(), || model.forward(&bound, &features)).cast(DType::F32);
        let result = Persistent::new("y", DType::F32, y.n_elements());
        graph.store(&y, &Graph::state_buffer(), &result);
        if name == "out.y" {
            let dy = case.tensor("grad_out.y")?;
            graph.backward_from(&y, &graph.constant("dy", &dy.floats, &dy.shape))?;
        }
        graph.compile(device)?.run(1)?;
        outputs.push((name.to_owned(), device.read(&result)?));
    }
    let grads: Vec<f32> = device.read(params.grads())?;
    outputs.extend(entries.into_iter().map(|entry| (format!("grad.{}", entry.name), grads[entry.range].to_vec())));
    Ok(Some(outputs))
}

/// Whether the case is one of an ensemble of networks.
pub(crate) fn is_ensemble(case: &Case) -> bool {
    matches!(case.op.as_str(), "tab_m" | "real_mlp")
}

fn model(case: &Case, n_inputs: usize, params: &mut ParametersBuilder, columns: &[CategoricalColumn]) -> Result<Box<dyn Module>> {
    let setting = |name: &str| -> Value { case.params[name].clone() };
    let mean_of = match case.word("mean_of")? {
        "outputs" => MeanOf::Outputs,
        "sigmoids" => MeanOf::Sigmoids,
        "softmaxes" => MeanOf::Softmaxes,
        found => bail!("{}: no mean of `{found}`", case.file),
    };
    if case.op == "real_mlp" {
        let activation = match case.word("activation")? {
            "selu" => Activation::selu(),
            "mish" => Activation::mish(),
            found => bail!("{}: no activation `{found}`", case.file),
        };
        let config = RealMlpConfig {
            scaling: from_value(setting("scaling"))?,
            numbers: from_value(setting("numbers"))?,
            n_members: from_value(setting("n_members"))?,
            hidden: from_value(setting("hidden"))?,
            activation,
            dropout: 0.0,
            n_outputs: from_value(setting("n_outputs"))?,
            mean_of,
        };
        return Ok(Box::new(RealMlp::new(params, &config, columns)));
    }
    let adapters: Adapters = from_value(setting("adapters"))?;
    let config = TabMConfig {
        n_inputs,
        numbers: from_value(setting("numbers"))?,
        n_members: from_value(setting("n_members"))?,
        adapters,
        hidden: from_value(setting("hidden"))?,
        dropout: 0.0,
        n_outputs: from_value(setting("n_outputs"))?,
        mean_of,
    };
    Ok(Box::new(TabM::new(params, &config, columns)))
}
