//! A linear model among the networks of an effort.

use brisk_loader::{Rows, k_fold, split};
use brisk_nn::tensor::program::{Device, Selection};
use brisk_tabular::{Columns, Effort, Fitting, Network, Preprocessing, Recipe, Scaling, TabularModel, Target};

use crate::noise;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

#[test]
fn a_linear_model_is_kept_where_it_predicts_best() -> Outcome {
    let folder = tempfile::tempdir()?;
    let device = Device::builder().selection(Selection::Cpu).threads(1).open()?;
    let x = |row: usize| [noise(row, 0), noise(row, 1)];
    let labels = (0..400).map(|row| 3.0 * x(row)[0] - 2.0 * x(row)[1]).collect::<Vec<_>>();
    let rows = Rows::new((0..400).flat_map(x).collect::<Vec<f32>>(), labels, 2)?;
    let columns = Columns::numbers(["a", "b"]);
    let preprocessing = Preprocessing::fit(&columns, &rows, Scaling::Standard)?;
    let target = Target::numbers("y", "train", &rows)?;
    let rows = preprocessing.over(&columns, &rows)?.with_target(&target).to_rows("all")?;
    let [train, valid] = split(&rows, 7, [0.8, 0.2])?;

    let mut recipes = Effort::Good.recipes(&rows, &target, 7);
    assert_eq!(recipes.iter().map(Recipe::is_linear).collect::<Vec<_>>()[..2], [false, true]);
    let of_quick = Effort::Quick.recipes(&rows, &target, 7);
    assert_eq!(of_quick, recipes[..2], "quick is the first network and the linear model");
    let of_best = Effort::Best.recipes(&rows, &target, 7);
    assert_eq!(of_best.iter().filter(|recipe| recipe.network.kind() == "realmlp").count(), 1, "of another family");
    let wide = Rows::new(vec![0.5; 2 * 4096], vec![1.0, 2.0], 4096)?;
    let kinds = |effort: Effort| effort.recipes(&wide, &target, 7).iter().map(|recipe| recipe.network.kind()).collect::<Vec<_>>();
    assert_eq!(
        (kinds(Effort::Quick), kinds(Effort::Best)),
        (vec!["mlp", "linear"], vec!["mlp", "linear"]),
        "too many for ensembles"
    );
    recipes.truncate(2);
    recipes[0] = Recipe { max_epochs: 1, ..Recipe::of_one(Network::Mlp { hidden: vec![4] }, 400) };
    let fitting = Fitting::new(recipes, 7);
    let folds = fitting.fit_folds(&device, preprocessing.clone(), target.clone(), &k_fold(&train, 7, 3)?)?;
    assert_eq!((folds.weights.len(), folds.fold_scores.len()), (6, 3));
    let [of_linear, of_other] = [1, 0].map(|first| folds.weights.iter().skip(first).step_by(2).copied().collect::<Vec<_>>());
    assert!(of_linear.iter().all(|weight| *weight == of_linear[0] && *weight > 0.3), "{:?}", folds.weights);
    assert!(of_other.iter().all(|weight| *weight == of_other[0]), "the same networks in each fold: {:?}", folds.weights);
    let r2 = folds.model.evaluate(&valid)?.get("r2");
    assert!(r2 > Some(0.9), "{r2:?}");
    let fitted = fitting.fit(&device, preprocessing, target, &train, &valid)?;
    assert!(fitted.weights[1] > 0.9, "{:?}", fitted.weights);
    let linear = fitted.linear.as_ref().ok_or("there is a linear model")?;
    for model in [linear, &fitted.model] {
        let r2 = model.evaluate(&valid)?.get("r2");
        assert!(r2 > Some(0.999), "{r2:?}");
    }
    if fitted.weights[1] == 1.0 {
        assert_eq!(fitted.model.evaluate(&valid)?, linear.evaluate(&valid)?, "a copy of the same model");
    }
    fitted.model.save(folder.path())?;
    assert_eq!(TabularModel::load(folder.path())?.network(), fitted.model.network());
    Ok(())
}
