//! The search for the largest batch whose plan fits into a budget.

use brisk_nn::tensor::{Graph, Precision};
use brisk_nn::{Activation, Adam, Mlp, MlpConfig};
use brisk_train::{Binary, Error, Model, Trainable, Trainer, TrainerConfig};

use crate::gpu::cpu;
use crate::run::{N_COLS, rows};

#[test]
fn the_largest_batch_that_fits_is_found() -> Result<(), Error> {
    let (device, rows, task) = (cpu(1), rows(0, 5000), Binary::new());
    let sizes = MlpConfig { n_inputs: N_COLS, hidden: vec![64], n_outputs: 1, activation: Activation::relu() };
    let model = Model::new(1, |params| Mlp::new(params, &sizes));
    for precision in [Precision::F32, Precision::Bf16] {
        let trainer =
            |batch_rows| Trainer::new(&device).config(TrainerConfig { precision, batch_rows, ..TrainerConfig::default() });
        // The plan of a run that validates on the same rows, which then take their memory twice.
        let adam = Adam::new(model.params());
        let planned = |batch_rows| {
            let trainable = Trainable::new(model.module(), model.params(), &adam);
            let training = trainer(batch_rows).prepare(trainable, &task, &rows, &rows)?;
            Ok::<_, Error>(Graph::planned_peak_bytes(&training.graphs())? - training.valid_rows().len_bytes())
        };
        let mut found = Vec::new();
        for budget_bytes in [900_000, 1_200_000, 2_000_000, 100_000_000] {
            let n_rows = trainer(256).find_batch_rows(&model, &task, &rows, budget_bytes)?;
            // The order of the validation rows is a buffer of 64 bytes.
            let takes = planned(n_rows)?;
            assert!(takes <= budget_bytes + 64, "{n_rows} rows take {takes}, more than {budget_bytes}");
            assert!(2 * n_rows > 5000 || planned(2 * n_rows)? > budget_bytes, "{n_rows} of {budget_bytes} is too few");
            found.push(n_rows);
        }
        assert!(found.is_sorted() && found[0] < found[2] && found[3] == 4096, "{found:?}");
        let error = trainer(256).find_batch_rows(&model, &task, &rows, 1000).expect_err("the rows take more").to_string();
        assert!(error.starts_with("budget_bytes: found 1000, while a batch of one row takes "), "{error}");
    }
    Ok(())
}
