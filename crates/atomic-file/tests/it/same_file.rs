use std::fs;

use brisk_atomic_file::is_same_file;

#[test]
fn files_that_do_not_exist_yet_are_compared_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("inner")).unwrap();
    assert!(is_same_file(&at("new"), &at("inner/../new")));
    assert!(!is_same_file(&at("new"), &at("inner/new")));
    assert!(!is_same_file(&at("new"), &at("other")));
    assert!(!is_same_file(&at("absent/new"), &at("absent/new")), "there is no such folder");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("inner", at("link")).unwrap();
        std::os::unix::fs::symlink("new", at("dangling")).unwrap();
        assert!(is_same_file(&at("link/new"), &at("inner/new")));
        assert!(is_same_file(&at("dangling"), &at("new")));
    }
}
