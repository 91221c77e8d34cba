use brisk_atomic_file::WriteError;

use super::*;

fn due(path: &Path, value: f32, replaced: &[&Path]) -> DueCheckpoint {
    let mut checkpoint = Checkpoint::new();
    checkpoint.insert("value", &[1], vec![value]).expect("one value");
    let replaced = replaced.iter().map(|path| path.to_path_buf()).collect();
    DueCheckpoint { checkpoint, path: path.to_owned(), replaced, copies: None, n_epochs: 1, n_steps: 2 }
}

#[track_caller]
fn check(path: &Path, expected: f32) {
    let checkpoint = Checkpoint::load(path).expect("it is complete");
    assert_eq!(checkpoint.f32("value", &[1]).expect("the checkpoint has the tensor"), [expected]);
}

#[test]
fn checkpoints_are_written_in_order_and_then_replace_others() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [best, old, new] = ["best", "old", "new"].map(|name| folder.path().join(name));
    let mut writer = CheckpointWriter::default();
    assert!(writer.written()?.is_none() && writer.wait()?.is_none(), "nothing is due");
    for due in [due(&best, 1.0, &[]), due(&old, 2.0, &[]), due(&new, 3.0, &[&old]), due(&best, 4.0, &[])] {
        writer.write(due)?;
    }
    for path in [&best, &old, &new, &best] {
        let written = writer.wait()?.expect("four are due");
        assert_eq!((&written.path, written.n_epochs, written.n_steps), (path, 1, 2));
    }
    assert!(writer.wait()?.is_none() && !old.exists());
    check(&new, 3.0);
    check(&best, 4.0);
    Ok(())
}

#[test]
fn a_checkpoint_takes_the_place_of_one_of_several_files() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [path, part, index] =
        ["last", "last-3-00001-of-00002", "last"].map(|name| folder.path().join(format!("{name}.safetensors")));
    let index = index.with_extension("safetensors.index.json");
    [&part, &index].iter().for_each(|file| std::fs::write(file, "").expect("there is room"));
    let mut writer = CheckpointWriter::default();
    writer.write(due(&path, 1.0, &[]))?;
    writer.wait()?;
    assert_eq!([path, part, index].map(|file| file.exists()), [true, false, false]);
    Ok(())
}

#[test]
fn after_a_failure_no_other_checkpoint_is_written() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [taken, other, old] = ["taken", "other", "old"].map(|name| folder.path().join(name));
    std::fs::create_dir(&taken).expect("it is new");
    due(&old, 1.0, &[]).checkpoint.save(&old)?;
    let mut writer = CheckpointWriter::default();
    writer.write(due(&taken, 2.0, &[&old]))?;
    writer.write(due(&other, 3.0, &[]))?;
    let error = writer.wait().expect_err("a folder is in the way");
    assert!(matches!(error, Error::Write(WriteError::IsFolder { .. })), "{error}");
    assert!(writer.wait()?.is_none() && !other.exists(), "submitted checkpoints are not written after a failure");
    check(&old, 1.0);
    writer.write(due(&other, 4.0, &[]))?;
    drop(writer);
    check(&other, 4.0);
    Ok(())
}
