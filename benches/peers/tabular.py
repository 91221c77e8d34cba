"""The example `tabular` compared with scikit-learn's MLPClassifier and MLPRegressor, on the same split and the same preprocessed columns.

    python3 benches/peers/tabular.py target/release/examples/tabular DATA_FOLDER --seeds 5

scikit-learn receives training and validation rows, and holds out as many of them as the example does for early stopping; categories are one-hot. It runs with the
example's hidden layers and with its default of one layer of 100, and the better of the two, by the mean over the seeds, is reported. Its other settings are its defaults.
"""

import argparse
import json
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, mean_squared_error, roc_auc_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import OneHotEncoder

# The file, its options, the metric, and the networks of scikit-learn.
BOTH = [(256, 128), (100,)]
TABLES = {
    "breast_cancer": ("tabular/breast_cancer.csv.gz", ["--skip-lines", "1"], "auc", BOTH),
    "digits": ("tabular/digits.csv.gz", [], "accuracy", BOTH),
    "california_housing": ("tabular/california_housing.csv.gz", ["--target", "median_house_value"], "rmse", BOTH),
    "adult": ("tabular/adult.data.gz", ["--header", "absent"], "auc", BOTH),
    "higgs": ("higgs/higgs_train.csv.gz", ["--target", "label"], "auc", BOTH),
    "kddcup": ("tabular/kddcup.data_10_percent.gz", ["--header", "absent"], "accuracy", [(100,)]),
}


def rows(folder, names, encoder):
    """The features, with one-hot categories, and labels of the sets of these names."""
    sets = [load_file(folder / f"{name}.safetensors") for name in names]
    features = np.concatenate([rows["features"] for rows in sets])
    if "categories" in sets[0]:
        codes = np.concatenate([rows["categories"] for rows in sets])
        if not hasattr(encoder, "categories_"):
            encoder.fit(codes)
        features = np.concatenate([features, encoder.transform(codes)], axis=1)
    return features.astype(np.float32), np.concatenate([rows["labels"] for rows in sets])


def peer_score(folder, metric, hidden, seed, target_std):
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
    x, y = rows(folder, ["train", "valid"], encoder)
    test_x, test_y = rows(folder, ["test"], encoder)
    settings = dict(hidden_layer_sizes=hidden, early_stopping=True, validation_fraction=1 / 8, random_state=seed)
    if metric == "rmse":
        predicted = MLPRegressor(**settings).fit(x, y).predict(test_x)
        return mean_squared_error(test_y, predicted) ** 0.5 * target_std
    model = MLPClassifier(**settings)
    try:
        model.fit(x, y.astype(int))
    except ValueError:
        # It holds out rows of each class, which is not possible for classes of one row.
        model.set_params(early_stopping=False, max_iter=30).fit(x, y.astype(int))
    if metric == "auc":
        return roc_auc_score(test_y, model.predict_proba(test_x)[:, 1])
    return accuracy_score(test_y, model.predict(test_x))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tabular", type=Path, help="the program of the example")
    parser.add_argument("data", type=Path, help="the folder of the data sets")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options, more = parser.parse_known_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    results = []
    for name in options.only:
        path, arguments, metric, networks = TABLES[name]
        ours, peers = [], {hidden: [] for hidden in networks}
        for seed in range(options.seeds):
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch)
                command = [options.tabular, options.data / path, *arguments, "--seed", str(seed), "--out", folder / "model"]
                command += ["--model", "mlp", "--save-rows", folder, "--json", folder / "results.json", *more]
                subprocess.run(command, check=True, capture_output=True)
                found = json.loads((folder / "results.json").read_text())
                target = json.loads((folder / "model/model.json").read_text())["target"]
                ours.append(found[f"test_{metric}"])
                for hidden, scores in peers.items():
                    scores.append(peer_score(folder, metric, hidden, seed, target.get("std", 1.0)))
        best = (min if metric == "rmse" else max)(peers, key=lambda hidden: np.mean(peers[hidden]))
        row = dict(table=name, metric=metric, seeds=options.seeds, ours=float(np.mean(ours)), ours_std=float(np.std(ours)))
        row |= dict(sklearn=float(np.mean(peers[best])), sklearn_std=float(np.std(peers[best])), sklearn_hidden=list(best))
        results.append(row)
        print(json.dumps(row), flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
