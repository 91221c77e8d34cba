//! Which folders are classes: the same for a folder and for an archive of it.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use crate::error::SourceError;

/// Names of parts of a data set, which are not classes.
const PARTS: [&str; 8] = ["train", "training", "test", "testing", "val", "valid", "validation", "eval"];

/// The path of a file or folder, without what leads nowhere (`.`); `None` if a part of it is hidden or belongs to a system.
pub(super) fn visible(path: &Path) -> Option<Vec<String>> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    let names: Vec<String> = names.collect();
    (!names.iter().any(|name| is_hidden(name))).then_some(names)
}

/// Whether a file or folder is hidden, or one that systems and programs leave in every folder.
fn is_hidden(name: &str) -> bool {
    const SYSTEM: [&str; 8] = [
        "@eadir",
        "__macosx",
        "thumbs.db",
        "ehthumbs.db",
        "desktop.ini",
        "$recycle.bin",
        "system volume information",
        "lost+found",
    ];
    name.starts_with('.') || SYSTEM.iter().any(|system| name.eq_ignore_ascii_case(system))
}

/// The classes of a tree of files.
#[derive(Debug, Default)]
pub(super) struct Tree {
    files: Vec<Vec<String>>,
    folders: BTreeSet<Vec<String>>,
}

/// The result: where the folders of the classes are, and their names, sorted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Classes {
    /// How many folders lead to those of the classes.
    pub(super) depth: usize,
    pub(super) names: Vec<String>,
    /// Those without a file.
    pub(super) empty: Vec<String>,
}

impl Tree {
    pub(super) fn add_file(&mut self, path: Vec<String>) {
        self.files.push(path);
    }

    pub(super) fn add_folder(&mut self, path: Vec<String>) {
        self.folders.insert(path);
    }

    /// The classes: the outermost folders, of which a single one that has no image itself is left out.
    ///
    /// # Errors
    /// If the folders are parts of a data set: `train` and `test`.
    pub(super) fn classes(&self) -> Result<Classes, SourceError> {
        // A note beside the folders is not an image, and is reported when it is decoded.
        let images: Vec<&Vec<String>> = self.files.iter().filter(|path| is_image(path)).collect();
        let files = if images.is_empty() { self.files.iter().collect() } else { images };
        let mut depth = 0;
        while let Some(first) = files.first().and_then(|path| path.get(depth))
            && files.iter().all(|path| path.len() > depth + 2 && path[depth] == *first)
        {
            depth += 1;
        }
        let root = files.first().map_or(&[][..], |path| &path[..depth]);
        let within = |path: &&Vec<String>| path.starts_with(root);
        let with_files: BTreeSet<&String> =
            self.files.iter().filter(within).filter(|path| path.len() > depth + 1).map(|path| &path[depth]).collect();
        let folders = self.folders.iter().filter(within).filter_map(|path| path.get(depth));
        let names: BTreeSet<&String> = folders.chain(with_files.iter().copied()).collect();

        let is_part = |name: &String| PARTS.iter().any(|part| name.eq_ignore_ascii_case(part));
        let has_folders = |name: &String| files.iter().all(|path| path.get(depth) != Some(name) || path.len() > depth + 2);
        if names.len() > 1 && names.iter().all(|name| is_part(name) && has_folders(name)) {
            let mut found: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            // The training set comes first, since it determines the classes of the others.
            found.sort_by_key(|name| !name.to_ascii_lowercase().starts_with("train"));
            return Err(SourceError::unsupported(
                "the folder",
                format!("holds the parts of a data set, {}, and not classes", found.join(", ")),
                format!(
                    "import the folder of each part by itself, first {}, then the others like its table (`like`, `--like`)",
                    [root, &[found[0].to_owned()]].concat().join("/")
                ),
            ));
        }
        let empty = names.iter().filter(|name| !with_files.contains(*name)).map(|name| (*name).clone()).collect();
        Ok(Classes { depth, names: names.into_iter().cloned().collect(), empty })
    }
}

fn is_image(path: &[String]) -> bool {
    let ending = path.last().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| matches!(&*ending, "png" | "jpg" | "jpeg" | "jpe" | "jfif"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> Tree {
        let mut tree = Tree::default();
        for path in paths {
            let Some(names) = visible(Path::new(path)) else { continue };
            if path.ends_with('/') { tree.add_folder(names) } else { tree.add_file(names) }
        }
        tree
    }

    #[track_caller]
    fn check(paths: &[&str], depth: usize, names: &[&str], empty: &[&str]) {
        let strings = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let expected = Classes { depth, names: strings(names), empty: strings(empty) };
        assert_eq!(tree(paths).classes().expect("classes"), expected, "{paths:?}");
    }

    #[test]
    fn the_outermost_folders_are_the_classes() {
        check(&["b/1.png", "a/2.png"], 0, &["a", "b"], &[]);
        check(&["./b/1.png", "./a/deep/2.png"], 0, &["a", "b"], &[]);
        check(&["a/1.png"], 0, &["a"], &[]);
        // A folder around all classes, with a note in it.
        check(&["set/", "set/README.txt", "set/a/1.png", "set/b/2.png", "set/c/"], 1, &["a", "b", "c"], &["c"]);
        check(&["x/y/a/1.png", "x/y/b/2.png"], 2, &["a", "b"], &[]);
        check(&["train/a/1.png", "train/b/2.png"], 1, &["a", "b"], &[]);
        check(&["1.png", "a/2.png", "b/"], 0, &["a", "b"], &["b"]);
        check(&[], 0, &[], &[]);
    }

    #[test]
    fn hidden_and_system_folders_are_none() {
        let left_out = [
            "a/.ipynb_checkpoints/1.png",
            ".git/x",
            "@eaDir/1.jpg",
            "__MACOSX/a/._1.png",
            "a/Thumbs.db",
            ".DS_Store",
            "$RECYCLE.BIN/",
        ];
        check(&[&left_out[..], &["a/1.png"]].concat(), 0, &["a"], &[]);
        check(&["a.b/1.png", "@home/1.png"], 0, &["@home", "a.b"], &[]);
    }

    #[test]
    fn parts_of_a_data_set_are_refused() {
        let refused = |paths: &[&str]| matches!(tree(paths).classes(), Err(SourceError::Unsupported { .. }));
        assert!(refused(&["train/a/1.png", "test/a/2.png"]) && refused(&["set/Train/a/1.png", "set/val/a/2.png"]));
        // Trains and tests may be classes.
        assert!(!refused(&["train/1.png", "test/2.png"]) && !refused(&["train/a/1.png", "car/a/2.png"]));
    }
}
