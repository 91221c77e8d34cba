"""Gradient boosting at its defaults, or tuned, and networks for tables, for `bench tabular --peers` and `--networks`.

    python3 table_models.py FOLDER PEER METRIC,… SEED [SECONDS]

The folder has the cells of the rows to train on, to validate and to test, as raw numbers. Boosting does not stop early at
its defaults, so it trains on the rows to train on and to validate; networks stop early on the rows to validate. With
SECONDS, settings are drawn at random until the time is over, each is trained with early stopping, and the model with the
best first metric of the validation rows is kept. Prints the metrics of the test rows, seconds and the peak memory of the
process in bytes.
"""

import os
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, roc_auc_score


def cells(folder, sets):
    """The columns of the sets, numbers first, and their labels."""
    labels = [np.fromfile(folder / f"{name}.labels", np.float32) for name in sets]
    parts = []
    for name, of_set in zip(sets, labels):
        n_rows = len(of_set)
        numbers = np.fromfile(folder / f"{name}.numbers", np.float32).reshape(n_rows, -1)
        codes = np.fromfile(folder / f"{name}.categories", np.uint32).reshape(n_rows, -1)
        parts.append((numbers, codes))
    numbers, codes = (np.concatenate(columns) for columns in zip(*parts))
    return numbers, codes, np.concatenate(labels)


def estimator(peer, kind, seed, categorical, settings):
    """An estimator of scikit-learn's interface with these settings."""
    is_number = kind == "number"
    if peer == "HistGradientBoosting":
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        maker = HistGradientBoostingRegressor if is_number else HistGradientBoostingClassifier
        return maker(random_state=seed, categorical_features="from_dtype", **settings)
    if peer == "LightGBM":
        from lightgbm import LGBMClassifier, LGBMRegressor

        return (LGBMRegressor if is_number else LGBMClassifier)(random_state=seed, verbose=-1, **settings)
    if peer == "XGBoost":
        from xgboost import XGBClassifier, XGBRegressor

        return (XGBRegressor if is_number else XGBClassifier)(random_state=seed, enable_categorical=True, **settings)
    if peer == "CatBoost":
        from catboost import CatBoostClassifier, CatBoostRegressor

        maker = CatBoostRegressor if is_number else CatBoostClassifier
        return maker(random_seed=seed, verbose=False, allow_writing_files=False, cat_features=categorical, **settings)
    if peer in NETWORKS:
        import pytabkit

        maker = getattr(pytabkit, NETWORKS[peer] + ("Regressor" if is_number else "Classifier"))
        return maker(device="cpu", random_state=seed, n_threads=os.cpu_count(), **settings)
    raise SystemExit(f"{peer}: no such peer")


# Their classes in pytabkit, by the authors of RealMLP, which has TabM's own code, too.
NETWORKS = {"RealMLP": "RealMLP_TD_", "TabM": "TabM_D_"}


N_ROUNDS = 4000
PATIENCE = 100

# HistGradientBoosting reads columns of more values as numbers.
MOST_CATEGORIES = 255


def drawn(peer, rng):
    """Settings from the ranges that are usual for the peer, with early stopping."""

    def log(low, high):
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    rate = log(0.01, 0.3)
    leaves = round(log(8, 256))
    if peer == "HistGradientBoosting":
        return {"learning_rate": rate, "max_leaf_nodes": leaves, "min_samples_leaf": round(log(5, 100)),
                "l2_regularization": log(1e-3, 10), "max_features": rng.uniform(0.5, 1.0), "max_iter": N_ROUNDS,
                "early_stopping": True, "n_iter_no_change": PATIENCE}
    if peer == "LightGBM":
        return {"learning_rate": rate, "num_leaves": leaves, "min_child_samples": round(log(5, 100)),
                "reg_lambda": log(1e-3, 10), "colsample_bytree": rng.uniform(0.5, 1.0), "subsample": rng.uniform(0.5, 1.0),
                "subsample_freq": 1, "n_estimators": N_ROUNDS}
    if peer == "XGBoost":
        return {"learning_rate": rate, "max_depth": int(rng.integers(3, 11)), "min_child_weight": log(1, 100),
                "reg_lambda": log(1e-3, 10), "colsample_bytree": rng.uniform(0.5, 1.0), "subsample": rng.uniform(0.5, 1.0),
                "n_estimators": N_ROUNDS, "early_stopping_rounds": PATIENCE}
    return {"learning_rate": log(0.02, 0.3), "depth": int(rng.integers(4, 9)), "l2_leaf_reg": log(1, 10),
            "iterations": N_ROUNDS, "early_stopping_rounds": PATIENCE}


def fit(peer, model, train, labels, valid, valid_labels):
    """Trains with the early stopping of the peer."""
    if peer == "HistGradientBoosting":
        model.fit(train, labels, X_val=valid, y_val=valid_labels)
    elif peer == "LightGBM":
        from lightgbm import early_stopping

        model.fit(train, labels, eval_set=[(valid, valid_labels)], callbacks=[early_stopping(PATIENCE, verbose=False)])
    elif peer == "XGBoost":
        model.fit(train, labels, eval_set=[(valid, valid_labels)], verbose=False)
    elif peer in NETWORKS:
        model.fit(train, labels, valid, valid_labels)
    else:
        model.fit(train, labels, eval_set=(valid, valid_labels))


class Classifier:
    """A classifier of numbered classes, some of which may have no row to train on: no peer takes such numbers.

    Their probability is 0.
    """

    def __init__(self, model, labels, n_classes):
        self.model, self.trained, self.n_classes = model, np.unique(labels), n_classes

    def codes(self, labels):
        """The labels as a peer takes them."""
        return np.searchsorted(self.trained, labels)

    def known(self, rows, labels):
        """The rows whose class has rows to train on, and their labels as a peer takes them."""
        is_known = np.isin(labels, self.trained)
        return rows[is_known], self.codes(labels[is_known])

    def probabilities(self, rows):
        """A column for each class, of rows that sum to 1."""
        of_trained = self.model.predict_proba(rows).astype(np.float64)
        columns = np.zeros((len(rows), self.n_classes))
        columns[:, self.trained] = of_trained / of_trained.sum(axis=1, keepdims=True)
        return columns


def scores(model, metrics, rows, labels):
    """The metrics."""
    if metrics == ["rmse"]:
        return [mean_squared_error(labels, model.predict(rows)) ** 0.5]
    probabilities = model.probabilities(rows)
    of = {
        "auc": lambda: roc_auc_score(labels, probabilities[:, 1]),
        "accuracy": lambda: accuracy_score(labels, probabilities.argmax(axis=1)),
        "log_loss": lambda: log_loss(labels, probabilities, labels=range(model.n_classes)),
    }
    return [of[metric]() for metric in metrics]


def main():
    # LightGBM's arguments of old and new releases differ.
    warnings.simplefilter("ignore")
    folder, peer, metrics, seed = Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(","), int(sys.argv[4])
    limit = float(sys.argv[5]) if len(sys.argv) > 5 else None
    import pandas

    all_numbers, all_codes, labels = cells(folder, ["train", "valid", "test"])
    n_train, n_valid = (len(cells(folder, [name])[2]) for name in ("train", "valid"))
    n_known = n_train + n_valid
    if peer in NETWORKS:
        # They take no missing numbers: those are the mean, and another column marks them.
        is_missing = np.isnan(all_numbers)
        means = np.nan_to_num(np.nanmean(all_numbers[:n_train], axis=0))
        marks = is_missing[:, is_missing[:n_train].any(axis=0)].astype(np.float32)
        all_numbers = np.concatenate([np.where(is_missing, means, all_numbers), marks], axis=1)

    def frame(numbers, codes, values):
        columns = {f"n{i}": numbers[:, i] for i in range(numbers.shape[1])}
        for i, of_column in enumerate(values):
            if peer == "HistGradientBoosting" and len(of_column) > MOST_CATEGORIES:
                columns[f"c{i}"] = codes[:, i]
                continue
            # Code 0 is a missing value, which CatBoost takes as a category.
            column = codes[:, i].astype(str)
            column = column if peer == "CatBoost" else np.where(codes[:, i] == 0, None, column)
            columns[f"c{i}"] = column if peer == "CatBoost" else pandas.Categorical(column, categories=of_column)
        return pandas.DataFrame(columns)

    values = [[str(code) for code in np.unique(all_codes[:n_known, i]) if code] for i in range(all_codes.shape[1])]
    kind = "number" if metrics == ["rmse"] else "classes"
    labels = labels if kind == "number" else labels.astype(int)

    def part(start, end):
        return frame(all_numbers[start:end], all_codes[start:end], values), labels[start:end]

    known, train, valid = part(0, n_known), part(0, n_train), part(n_train, n_known)
    test = part(n_known, len(labels))
    categorical = [f"c{i}" for i in range(all_codes.shape[1])]
    started = time.perf_counter()

    def trained(settings, rows, of_rows, stop_on=None):
        """A model of these rows; with rows to stop on, by the early stopping of the peer."""
        model = estimator(peer, kind, seed, categorical, settings)
        named = None if kind == "number" else Classifier(model, of_rows, labels.max() + 1)
        if named:
            of_rows, stop_on = named.codes(of_rows), stop_on and named.known(*stop_on)
        if stop_on:
            fit(peer, model, rows, of_rows, *stop_on)
        else:
            model.fit(rows, of_rows)
        return named or model

    if limit is None and peer in NETWORKS:
        best = trained({}, *train, valid)
    elif limit is None:
        best = trained({}, *known)
    else:
        rng, best, best_score = np.random.default_rng(seed), None, None
        while best is None or time.perf_counter() - started < limit:
            model = trained(drawn(peer, rng), *train, valid)
            of_valid = scores(model, metrics[:1], *valid)[0] * (-1 if metrics[0] == "rmse" else 1)
            if best is None or of_valid > best_score:
                best, best_score = model, of_valid
    seconds = time.perf_counter() - started
    print(*scores(best, metrics, *test), seconds, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    main()
