"""One run of gradient boosting at its defaults, for `bench tabular --peers`.

    python3 boosting.py FOLDER PEER METRIC SEED

The folder has the cells of the rows to train on, to validate and to test, as raw numbers. No peer stops early at its defaults, so each trains on the rows to train on and to validate. Prints the
metric of the test rows, seconds and the peak memory of the process in bytes.
"""

import resource
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import accuracy_score, mean_squared_error, roc_auc_score


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


def model(peer, kind, seed, categorical):
    """An estimator of scikit-learn's interface."""
    is_number = kind == "number"
    if peer == "HistGradientBoosting":
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        maker = HistGradientBoostingRegressor if is_number else HistGradientBoostingClassifier
        return maker(random_state=seed, categorical_features="from_dtype")
    if peer == "LightGBM":
        from lightgbm import LGBMClassifier, LGBMRegressor

        return (LGBMRegressor if is_number else LGBMClassifier)(random_state=seed, verbose=-1)
    if peer == "XGBoost":
        from xgboost import XGBClassifier, XGBRegressor

        return (XGBRegressor if is_number else XGBClassifier)(random_state=seed, enable_categorical=True)
    if peer == "CatBoost":
        from catboost import CatBoostClassifier, CatBoostRegressor

        maker = CatBoostRegressor if is_number else CatBoostClassifier
        return maker(random_seed=seed, verbose=False, allow_writing_files=False, cat_features=categorical)
    raise SystemExit(f"{peer}: no such peer")


def main():
    folder, peer, metric, seed = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    import pandas

    def frame(numbers, codes, values):
        columns = {f"n{i}": numbers[:, i] for i in range(numbers.shape[1])}
        for i, of_column in enumerate(values):
            # Code 0 is a missing value, which CatBoost takes as a category.
            column = codes[:, i].astype(str) if peer == "CatBoost" else np.where(codes[:, i] == 0, None, codes[:, i])
            columns[f"c{i}"] = column if peer == "CatBoost" else pandas.Categorical(column, categories=of_column)
        return pandas.DataFrame(columns)

    numbers, codes, labels = cells(folder, ["train", "valid"])
    test_numbers, test_codes, test_labels = cells(folder, ["test"])
    values = [[code for code in np.unique(codes[:, i]) if code] for i in range(codes.shape[1])]
    train, test = frame(numbers, codes, values), frame(test_numbers, test_codes, values)
    kind = "number" if metric == "rmse" else "classes"
    estimator = model(peer, kind, seed, [f"c{i}" for i in range(codes.shape[1])])
    started = time.perf_counter()
    estimator.fit(train, labels if kind == "number" else labels.astype(int))
    seconds = time.perf_counter() - started
    if metric == "rmse":
        score = mean_squared_error(test_labels, estimator.predict(test)) ** 0.5
    elif metric == "auc":
        score = roc_auc_score(test_labels, estimator.predict_proba(test)[:, 1])
    else:
        score = accuracy_score(test_labels, np.ravel(estimator.predict(test)).astype(int))
    print(score, seconds, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    main()
