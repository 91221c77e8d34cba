//! Where a model is worse, as the example `tabular` shows it.

use crate::place::Place;
use crate::run::noise;

#[test]
fn the_program_shows_the_rows_that_are_predicted_worst() {
    let place = Place::new();
    let row = |row: usize| {
        let (x, is_odd) = (noise(row, 0), row.is_multiple_of(6));
        let is_yes = if is_odd { noise(row, 1) > 0.0 } else { x > 0.0 };
        format!("{x},{},{}\n", if is_odd { "o<dd" } else { "plain" }, if is_yes { "yes" } else { "no" })
    };
    place.write("rows.csv", "x,kind,y\n".to_owned() + &(0..1500).map(row).collect::<String>());
    let fast = ["--model", "mlp", "--epochs", "20", "--hidden", "16", "--lr", "0.01", "--out", "model"];
    let shown = place.succeed("tabular", &[&["rows.csv", "--json", "out.json", "--report", "page.html"][..], &fast].concat());
    let worst = shown.lines().find(|line| line.starts_with("worst rows")).unwrap_or_default();
    assert!(worst.contains("`kind` is \"o<dd\"") && worst.contains("log loss"), "{shown}");
    let worse = &place.json("out.json")["worse_segments"];
    assert_eq!((&worse[0]["column"], &worse[0]["values"]["value"]), (&"kind".into(), &"o<dd".into()), "{worse}");
    let page = std::fs::read_to_string(place.path("page.html")).expect("it was written");
    assert!(page.contains("o&lt;dd") && page.contains("ROC curve") && page.contains("test auc"), "{page}");
    let [number, category] =
        ["<tr><th>x</th><td>number</td><td>none</td><td>-", "<tr><th>kind</th><td>category</td><td>none</td>"];
    assert!(page.contains(number) && page.contains(category), "{page}");
    assert!(page.contains("<td>2 different values</td><td>embedding of 2 different values</td><td>0."), "{page}");
    place.refuse("tabular", &["rows.csv", "--json", "a", "--report", "a"], &["--report", "--json"]);
    place.refuse("tabular", &["rows.csv", "--report", "rows.csv"], &["--report", "DATA"]);
}
