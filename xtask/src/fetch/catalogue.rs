//! The data sets: where their files are published, their checksums, and the tables that are made from them.

use std::path::Path;

use super::checksum::Checksum::{self, Md5, Sha256};

/// A data set.
#[derive(Debug)]
pub(super) struct DataSet {
    pub(super) name: &'static str,
    /// The folder in which its authors publish the files.
    pub(super) url: &'static str,
    pub(super) files: &'static [File],
    pub(super) imports: &'static [Import],
    /// The example that trains on it.
    pub(super) example: &'static str,
}

/// A published file.
#[derive(Debug, Clone, Copy)]
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) n_bytes: u64,
    pub(super) checksum: Checksum,
}

/// A table that the example `import` makes from a file.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) source: &'static str,
    pub(super) table: &'static str,
    pub(super) options: &'static [&'static str],
}

pub(super) const DATA_SETS: [DataSet; 5] = [
    DataSet {
        name: "cifar10",
        url: "https://www.cs.toronto.edu/~kriz",
        files: &[file(
            "cifar-10-binary.tar.gz",
            170_052_171,
            Sha256("c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"),
        )],
        imports: &[
            import("cifar-10-binary.tar.gz", TRAIN, &["--cifar-set", "train"]),
            import("cifar-10-binary.tar.gz", TEST, &["--cifar-set", "test"]),
        ],
        example: "images",
    },
    DataSet {
        name: "cifar100",
        url: "https://www.cs.toronto.edu/~kriz",
        files: &[file("cifar-100-binary.tar.gz", 168_513_733, Md5("03b5dce01913d631647c71ecec9e9cb8"))],
        imports: &[
            import("cifar-100-binary.tar.gz", TRAIN, &["--cifar-labels", "fine", "--cifar-set", "train"]),
            import("cifar-100-binary.tar.gz", TEST, &["--cifar-labels", "fine", "--cifar-set", "test"]),
        ],
        example: "images",
    },
    DataSet {
        name: "mnist",
        // A copy of the files that PyTorch's developers keep; the author's server no longer serves them.
        url: "https://ossci-datasets.s3.amazonaws.com/mnist",
        files: &[
            file("train-images-idx3-ubyte.gz", 9_912_422, Md5("f68b3c2dcbeaaa9fbdd348bbdeb94873")),
            file("train-labels-idx1-ubyte.gz", 28_881, Md5("d53e105ee54ea40749a09fcbcd1e9432")),
            file("t10k-images-idx3-ubyte.gz", 1_648_877, Md5("9fb629c4189551a2d022fa330f9573f3")),
            file("t10k-labels-idx1-ubyte.gz", 4_542, Md5("ec29112dd5afa0611ce80d1b7f02629c")),
        ],
        imports: &IDX,
        example: "images",
    },
    DataSet {
        name: "fashion-mnist",
        url: "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
        files: &[
            file("train-images-idx3-ubyte.gz", 26_421_880, Md5("8d4fb7e6c68d591d4c3dfef9ec88bf0d")),
            file("train-labels-idx1-ubyte.gz", 29_515, Md5("25c81989df183df01b3e8a0aad5dffbe")),
            file("t10k-images-idx3-ubyte.gz", 4_422_102, Md5("bef4ecab320f06d8554ea6380940ec79")),
            file("t10k-labels-idx1-ubyte.gz", 5_148, Md5("bb300cfdad3c16e7a12a480ee83cd310")),
        ],
        imports: &IDX,
        example: "images",
    },
    DataSet {
        name: "higgs",
        url: "https://archive.ics.uci.edu/ml/machine-learning-databases/00280",
        files: &[file("HIGGS.csv.gz", 2_816_407_858, Sha256("ea302c18164d4e3d916a1e2e83a9a8d07069fa6ebc7771e4c0540d54e593b698"))],
        imports: &[import(
            "HIGGS.csv.gz",
            "higgs.safetensors",
            &["--label", "0", "--label-kind", "binary", "--header", "absent"],
        )],
        example: "tabular",
    },
];

const TRAIN: &str = "train.safetensors";
const TEST: &str = "test.safetensors";

/// The tables of MNIST and its relatives.
const IDX: [Import; 2] = [import("train-images-idx3-ubyte.gz", TRAIN, &[]), import("t10k-images-idx3-ubyte.gz", TEST, &[])];

const fn file(name: &'static str, n_bytes: u64, checksum: Checksum) -> File {
    File { name, n_bytes, checksum }
}

const fn import(source: &'static str, table: &'static str, options: &'static [&'static str]) -> Import {
    Import { source, table, options }
}

impl DataSet {
    /// The options with which the example trains on the tables in `folder`.
    pub(super) fn example_options(&self, folder: &Path) -> String {
        match self.imports {
            [only] => format!("-- {}", folder.join(only.table).display()),
            _ => format!("-- --data {}", folder.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_consistent() {
        for set in &DATA_SETS {
            for import in set.imports {
                assert!(set.files.iter().any(|file| file.name == import.source), "{}: {} is downloaded", set.name, import.source);
            }
            for file in set.files {
                let (hex, len) = match file.checksum {
                    Md5(hex) => (hex, 32),
                    Sha256(hex) => (hex, 64),
                };
                let is_hex = hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
                assert!(hex.len() == len && is_hex, "{}: {hex}", file.name);
            }
            assert!(set.url.starts_with("https://") && !set.url.ends_with('/'), "{}", set.url);
        }
    }

    #[test]
    fn the_example_gets_a_folder_of_two_tables_or_one_table() {
        let options = |name: &str| {
            let set = DATA_SETS.iter().find(|set| set.name == name).expect("it is listed");
            set.example_options(Path::new("data"))
        };
        assert_eq!(options("mnist"), "-- --data data");
        assert!(options("higgs").ends_with("higgs.safetensors"), "{}", options("higgs"));
    }
}
