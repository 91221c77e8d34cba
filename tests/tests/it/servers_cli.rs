//! Examples that read from servers, called from the command line.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

use brisk_table::{Schema, Table, TableWriter};
use serde_json::Value;

use crate::place::Place;
use crate::rclone::Rclone;
use crate::run::noise;
use crate::server::{Fault, Server};

/// The URL of a server that answers each request with the next of these status lines and headers, and with the last one from then
/// on.
fn serving(answers: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("this machine has a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let mut stream = stream.expect("the example connects");
            let mut lines = BufReader::new(&stream).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let answer = answers[n.min(answers.len() - 1)];
            write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").expect("the example reads it");
        }
    });
    format!("http://{address}/t.safetensors")
}

#[test]
fn a_long_wait_for_a_server_is_told_once() {
    let place = Place::new();
    let url = serving(&["503 Busy\r\nRetry-After: 3", "503 Busy", "404 Not Found"]);
    let stderr = place.refuse("inspect", &[&url, "--retry-seconds", "9"], &["t.safetensors", "no such object"]);
    let told: Vec<&str> = stderr.lines().filter(|line| line.contains("trying again")).collect();
    assert_eq!(told.len(), 1, "{stderr}");
    assert!([url.as_str(), "503", "9 s"].iter().all(|word| told[0].contains(word)), "{stderr}");
    let url = serving(&["503 Busy", "404 Not Found"]);
    let stderr = place.refuse("inspect", &[&url], &["no such object"]);
    assert!(!stderr.contains("trying again"), "a short wait is not told: {stderr}");
}

#[test]
fn the_option_of_retries_is_used_or_refused() {
    let place = Place::new();
    let url = serving(&["503 Busy"]);
    place.refuse("inspect", &[&url, "--retry-seconds", "0"], &["1 attempt", "503", "`--retry-seconds`"]);
    place.write("rows.csv", "x,y\n1,0\n");
    place.refuse("import", &["rows.csv", "t.safetensors", "--retry-seconds", "5"], &["--retry-seconds", "URL"]);
    place.refuse("higgs", &["--retry-seconds", "5"], &["--retry-seconds", "URL"]);
}

#[test]
fn the_options_of_the_cache_are_used_or_refused() {
    let place = Place::new();
    let (_server, url) = serving_rows(&place, 400);
    let run = ["--train", &url, "--test", &url, "--hidden", "4", "--epochs", "1", "--cache", "blocks"];
    place.succeed("higgs", &[&run[..], &["--cache-gib", "0.5"]].concat());
    let blocks = fs::read_dir(place.path("blocks")).expect("it was made").flatten();
    assert!(blocks.into_iter().any(|block| block.path().extension().is_some_and(|name| name == "block")), "rows are in it");
    place.write("blocks-file", "");
    place.refuse("higgs", &[&run[..], &["--cache", "blocks-file"]].concat(), &["blocks-file"]);
    place.refuse("higgs", &["--cache", "blocks"], &["`--cache` has no effect without a table at a URL"]);
    place.refuse("data_parallel", &["--cache-gib", "5"], &["`--cache-gib` has no effect without a table at a URL"]);
}

/// A server of a table of so many rows of 12 bytes, and its URL.
fn serving_rows(place: &Place, n_rows: usize) -> (Server, String) {
    let server = Server::start();
    place.write("rows.csv", (0..n_rows).map(|i| format!("{},{i},{}\n", i % 2, i * i % 7)).collect::<String>());
    place.succeed("import", &["rows.csv", "rows.safetensors", "--label", "0"]);
    server.put("/rows.safetensors", fs::read(place.path("rows.safetensors")).expect("it was written"));
    let url = server.url("/rows.safetensors");
    (server, url)
}

#[test]
fn a_run_says_what_it_has_read_and_that_its_cache_has_failed() {
    let place = Place::new();
    let (server, url) = serving_rows(&place, 100_000);
    let run = || {
        let run = ["--train", &url, "--test", &url, "--hidden", "4", "--epochs", "1", "--cache", "blocks"];
        let (output, stderr) = place.run("higgs", &run);
        assert!(output.status.success(), "{stderr}");
        ["read: ", "warning: "].map(|word| {
            let lines: Vec<_> = stderr.lines().filter(|line| line.starts_with(word) && !line.contains("trained on")).collect();
            assert!(lines.len() < 2, "{stderr}");
            lines.concat()
        })
    };
    let [read, warning] = run();
    assert!(
        read.contains("MiB from servers, ") && read.ends_with("requests sent again: 0") && warning.is_empty(),
        "{read}{warning}"
    );
    // The file that is locked while a block is written.
    let size = place.path("blocks/size");
    let make_read_only = move || _ = fs::remove_file(&size).and_then(|()| fs::create_dir(&size));
    make_read_only();
    let [read, warning] = run();
    let is_only_read = |warning: &str| warning.contains("blocks: the cache is only read, blocks are not written: ");
    assert!(read.starts_with("read: 0.1 MiB from servers, 2.") && is_only_read(&warning), "{read}, {warning}");
    // It fails when the first block is requested, after the headers.
    fs::remove_dir_all(place.path("blocks")).expect("it is a folder");
    server.misbehave(move |request, _| {
        if request.range().is_some_and(|(first, _)| first > 0) {
            make_read_only();
        }
        None
    });
    let [read, warning] = run();
    assert!(read.contains("MiB from servers, 0.0 MiB from the cache") && is_only_read(&warning), "{read}, {warning}");
}

#[test]
fn a_look_at_a_table_takes_few_bytes() {
    let place = Place::new();
    let (server, url) = serving_rows(&place, 300_000);
    let shown = place.succeed("inspect", &[&url]);
    assert!(shown.contains("300,000") && shown.contains("mean"), "{shown}");
    let ranges: Vec<_> = server.requests().iter().map(|request| request.range().expect("a range")).collect();
    let n_bytes: usize = ranges.iter().map(|(first, last)| last + 1 - first).sum();
    assert!(n_bytes <= 128 << 10 && ranges.len() <= 3, "{ranges:?}");
    assert!(place.succeed("inspect", &["rows.safetensors"]).lines().skip(1).eq(shown.lines().skip(1)), "{shown}");
    place.succeed("inspect", &[&url, "--verify"]);
}

#[test]
fn a_url_of_the_wrong_kind_is_refused_with_what_is_expected() {
    let (place, server) = (Place::new(), Server::start());
    place.write("rows.csv", "y,x\n0,1\n1,2\n");
    let import = |url: &str, words: &[&str]| _ = place.refuse("import", &["rows.csv", url], words);
    import(&server.url("/t.safetensors"), &["cannot be written by http:", "s3:, gs: or az:, or to a path"]);
    let folder = server.url("/rows");
    let one_file = ["/rows: ", "this program reads one file, not a folder of shards"];
    place.refuse("tabular", &[&folder], &one_file);
    place.refuse("images", &["--data", &folder], &one_file);
    server.misbehave(|_, _| Some(Fault::Status(200, "Content-Type: text/html\r\n", "<html><a href=\"a\">a</a></html>")));
    place.refuse("tabular", &[&folder], &one_file);
    server.misbehave(|_, _| Some(Fault::Status(403, "", "")));
    let stderr = place.refuse("tabular", &[&folder], &["refuses"]);
    assert!(!stderr.contains("shards"), "{stderr}");
}

#[test]
fn a_scheme_without_slashes_is_no_file() {
    let place = Place::new();
    place.refuse("inspect", &["s3:bucket/t.safetensors"], &["s3://bucket/t.safetensors was probably meant"]);
    place.refuse("import", &["https:host/rows.csv", "t.safetensors"], &["https://host/rows.csv was probably meant"]);
    place.refuse("higgs", &["--train", "gs:b/x", "--test", "gs:b/y"], &["gs://b/x was probably meant"]);
    place.refuse("tabular", &["https:host/rows.csv"], &["https://host/rows.csv was probably meant"]);
    // Names of files, which do not exist.
    place.refuse("tabular", &["C:rows.csv"], &["C:rows.csv", "no such file"]);
    // A file with such a name is one.
    #[cfg(unix)]
    {
        place.write("s3:rows.csv", "x,y\n1,0\n");
        place.succeed("import", &["s3:rows.csv", "t.safetensors"]);
    }
}

/// A run over few rows.
const RUN: [&str; 8] = ["--rows", "2000", "--hidden", "8", "--batch", "100", "--data-dir", "data"];

/// Runs an example that trains; returns its exit status, its results and its messages.
fn train(place: &Place, example: &'static str, args: &[&str]) -> (Option<i32>, Value, String) {
    let (output, stderr) = place.run(example, &[&RUN, args, &["--json", "results.json"]].concat());
    (output.status.code(), place.json("results.json"), stderr)
}

#[test]
fn a_run_goes_on_from_the_server_to_which_it_was_copied() {
    let (place, server) = (Place::new(), Server::start());
    let (status, whole, stderr) = train(&place, "data_parallel", &["--epochs", "3", "--out", "whole"]);
    assert_eq!(status, Some(0), "{stderr}");
    for (files, fetched) in [("one", "fetched the run at"), ("each", "each replica reads its part of `last.safetensors`")] {
        let url = server.url(&format!("/runs/{files}"));
        let to_server = ["--checkpoints-to", url.as_str(), "--checkpoint-files", files];
        let first = ["--epochs", "2", "--out", "first"];
        let (status, _, stderr) = train(&place, "data_parallel", &[&to_server[..], &first].concat());
        assert_eq!(status, Some(0), "{stderr}");
        fs::remove_dir_all(place.path("first")).expect("it was written");
        // Another number of replicas, on another machine.
        let again = ["--epochs", "3", "--replicas", "3", "--out", files, "--resume", "auto"];
        let (status, resumed, stderr) = train(&place, "data_parallel", &[&to_server[..], &again].concat());
        assert_eq!((status, &resumed["epochs"]), (Some(0), &Value::from(3)), "{stderr}");
        assert!(stderr.contains(fetched), "{stderr}");
        let auc = |results: &Value| results["test_auc"].as_f64().expect("a number");
        assert!((auc(&resumed) - auc(&whole)).abs() < 1e-3, "{resumed} differs from {whole}");
        place.refuse(
            "higgs",
            &[&RUN[..], &to_server[..2], &["--out", &format!("{files}-again")]].concat(),
            &["--checkpoints-to", "--resume auto"],
        );
        let (status, _, stderr) = train(&place, "data_parallel", &["--epochs", "4", "--resume", &url]);
        assert_eq!(status, Some(0), "{stderr}");
        // Damaged there: the best one is used.
        let is_last = |name: &String| name.starts_with(&format!("/runs/{files}/last")) && name.ends_with(".safetensors");
        let last = server.names_of_objects().into_iter().find(is_last).expect("it was copied");
        server.put(&last, b"half".to_vec());
        let (status, _, stderr) = train(&place, "data_parallel", &["--epochs", "4", "--resume", &url]);
        assert_eq!(status, Some(0), "{stderr}");
        let said = ["not resuming from a damaged checkpoint: ", "resuming from ", "best.safetensors"];
        assert!(said.iter().all(|said| stderr.contains(said)), "{stderr}");
    }
}

#[test]
fn a_run_without_copies_of_its_checkpoints_has_failed() {
    let (place, server) = (Place::new(), Server::start());
    server.misbehave(|request, _| (request.method == "PUT").then_some(Fault::Status(403, "", "")));
    let url = server.url("/runs/7");
    let (status, results, stderr) = train(&place, "higgs", &["--epochs", "1", "--out", "run", "--checkpoints-to", &url]);
    assert_eq!((status, &results["epochs"]), (Some(1), &Value::from(1)), "{stderr}");
    assert!(stderr.contains(&url) && stderr.contains("has ended without copies"), "{stderr}");
    place.refuse("higgs", &["--checkpoints-to", "runs"], &["--checkpoints-to", "URL"]);
    place.refuse("higgs", &["--checkpoints-to", "s3:b/runs"], &["s3://b/runs was probably meant"]);
}

/// A program that finds a server in place of S3.
fn command_with_store(place: &Place, server: &Server, example: &'static str, args: &[&str]) -> Command {
    let mut command = place.command(example, args);
    command.env("AWS_ENDPOINT", format!("http://{}", server.address)).env("AWS_ALLOW_HTTP", "true").env("AWS_REGION", "here");
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "s3cret");
    command
}

#[test]
fn shards_are_written_to_a_store() {
    let (place, server) = (Place::new(), Server::start());
    place.write("rows.csv", "y,x\n0,1\n1,2\n0,3\n1,4\n0,5\n");
    let run = |example: &'static str, args: &[&str]| {
        let output = command_with_store(&place, &server, example, args).output().expect("it runs");
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        assert!(output.status.success(), "{args:?}: {said:?}");
        said
    };
    run("import", &["rows.csv", "s3://bucket/rows", "--shard-rows", "2"]);
    assert_eq!(server.names_of_objects().len(), 4, "an index and three shards: {:?}", server.names_of_objects());
    let [shown, _] = run("inspect", &["s3://bucket/rows"]);
    assert!(shown.contains("shards") && shown.contains('5'), "{shown}");
    place.refuse("import", &["rows.csv", "s3://bucket/rows.safetensors", "--shard-rows", "2"], &["folder", "rows.safetensors"]);
    // A table that is there is sent, and copied back.
    run("import", &["rows.csv", "rows.safetensors"]);
    run("import", &["rows.safetensors", "s3://bucket/sent", "--shard-rows", "3"]);
    run("import", &["s3://bucket/sent", "back.safetensors"]);
    let bytes = |name: &str| Table::open(place.path(name)).expect("a table").rows::<f32>(0..5).expect("floats").to_vec();
    assert_eq!(bytes("back.safetensors"), bytes("rows.safetensors"));
}

/// Kills imports while a file of theirs is on its way; after the next one, nothing is there but its table.
#[cfg(unix)]
#[test]
fn what_killed_imports_have_left_is_removed_by_the_next() {
    use std::process::Stdio;

    use crate::server::Request;

    let (place, server) = (Place::new(), Server::start());
    place.write("few.csv", "y,x\n0,1\n1,2\n0,3\n");
    place.write("rows.csv", format!("y,x\n{}", "0,0.333\n1,0.25\n".repeat(1 << 19)));
    fs::create_dir(place.path("tmp")).expect("it is new");
    let command = |args: &[&str]| {
        let mut command = command_with_store(&place, &server, "import", args);
        command.env("TMPDIR", place.path("tmp")).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let staged = || {
        let folders = fs::read_dir(place.path("tmp")).expect("a folder").map(|entry| entry.expect("an entry").path());
        let files = folders.flat_map(|folder| fs::read_dir(folder).expect("a folder"));
        files.map(|entry| entry.expect("an entry").file_name()).filter(|name| name != ".staging-number").count()
    };
    let [rows, few] = ["rows.csv", "few.csv"].map(|name| {
        server.put(&format!("/{name}"), fs::read(place.path(name)).expect("it was written"));
        server.url(&format!("/{name}"))
    });
    // The fourth shard, the parts of an object, or a later part of the rows.
    let is_late = |request: &Request| match request.method.as_str() {
        "GET" => request.path == "/rows.csv" && request.range().is_some_and(|(first, _)| first > 0),
        "PUT" => request.path.contains("-00003"),
        method => method == "POST",
    };
    for (sources, target, shards, names) in [
        (
            ["rows.csv", "few.csv"],
            "s3://bucket/rows",
            &["--shard-rows", "10000"][..],
            vec!["table-", "table.safetensors.index.json"],
        ),
        (["rows.csv", "few.csv"], "s3://bucket/one.safetensors", &[], vec!["one.safetensors"]),
        ([&rows, &few], "here.safetensors", &[], vec![]),
    ] {
        let [source, next] = sources;
        // The answer never comes.
        server.misbehave(move |request, _| is_late(request).then_some(Fault::Silence));
        let n_before = server.requests().len();
        let mut import = command(&[&[source, target], shards].concat()).spawn().expect("it starts");
        while !server.requests()[n_before..].iter().any(is_late) {
            assert!(import.try_wait().expect("it can be asked").is_none(), "it is in the middle of it");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        import.kill().expect("it runs");
        import.wait().expect("it ends");
        assert!(staged() > 0, "{target}: files that were on their way");
        server.misbehave(|_, _| None);
        assert!(command(&[&[next, target], shards].concat()).status().expect("it runs").success());
        assert_eq!(staged(), 0, "{target}");
        let mut there = server.names_of_objects();
        there.retain(|name| name.starts_with(target.trim_start_matches("s3:/")));
        assert!(
            there.len() == names.len() && names.iter().all(|name| there.iter().any(|there| there.contains(name))),
            "{there:?}"
        );
    }
}

/// Each of the ranks reads a part of the rows; the first says what they have read together.
#[cfg(feature = "mpi")]
#[test]
fn ranks_say_together_what_they_have_read() {
    use crate::example::built;

    let place = Place::new();
    let (server, url) = serving_rows(&place, 100_000);
    let mut command = Command::new(built("launch"));
    command.args(["-n", "2"]).arg(built("data_parallel")).args(["--train", &url, "--test", &url, "--stream", "16"]);
    command.args(["--hidden", "4", "--batch", "1000", "--epochs", "1", "--cache", "blocks"]).current_dir(place.path(""));
    let output = command.env("BRISK_DEVICE", "cpu").output().expect("launch starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("read: ").count(), 1, "{said}");
    assert!(said.contains(" from the cache, by 2 ranks; requests sent again: 0"), "{said}");
    assert!(!server.requests().is_empty());
}

/// Text of 600 rows that can be learned.
fn rows() -> String {
    let rows = (0..600).map(|row| {
        let [a, b] = [0, 1].map(|column| noise(row, column));
        format!("{},{a},{b}\n", u8::from(a + 0.3 * b > 0.0))
    });
    format!("y,a,b\n{}", rows.collect::<String>())
}

/// What each program reads from a server is what it reads from the file.
#[test]
fn programs_read_from_a_server_what_they_read_from_files() {
    let (place, server) = (Place::new(), Server::start());
    place.write("rows.csv", rows());
    server.put("/rows.csv", fs::read(place.path("rows.csv")).expect("it was written"));
    let run = |example: &'static str, args: &[&str]| {
        let output = place.command(example, args).env("XDG_CACHE_HOME", place.path("cache")).output().expect("the example runs");
        let [shown, said] = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        assert!(output.status.success(), "{example} {args:?}: {said}");
        shown
    };
    let csv = server.url("/rows.csv");
    run("import", &["rows.csv", "here.safetensors"]);
    run("import", &[&csv, "there.safetensors"]);
    let [here, there] = ["here", "there"].map(|name| Table::open(place.path(format!("{name}.safetensors"))).expect("a table"));
    assert_eq!((here.n_rows(), here.rows::<f32>(0..600).ok()), (600, there.rows::<f32>(0..600).ok()));

    server.put("/t.safetensors", fs::read(place.path("here.safetensors")).expect("it was imported"));
    let url = server.url("/t.safetensors");
    let shown = run("inspect", &[&url]);
    assert!(shown.contains("600") && shown.contains(&url), "{shown}");

    let auc = |example: &'static str, table: &str, args: &[&str]| {
        let small = ["--hidden", "8", "--batch", "100", "--epochs", "2", "--json", "results.json"];
        run(example, &[&["--train", table, "--test", table][..], &small, args].concat());
        place.json("results.json")["test_auc"].as_f64().expect("a number")
    };
    for (example, args) in [("higgs", &[][..]), ("data_parallel", &["--stream", "16", "--replicas", "2"])] {
        let (here, there) = (auc(example, "here.safetensors", args), auc(example, &url, args));
        assert!(here == there && here > 0.6, "{example}: {here} from the file, {there} from the server");
    }

    let mut letters =
        TableWriter::create(place.path("letters.safetensors"), Schema::shaped(&[28, 28])).expect("it can be written");
    for row in 0..400 {
        let pixels: Vec<f32> = (0..784).map(|pixel| noise(row, pixel)).collect();
        letters.push(&pixels, &[(row % 26) as f32]).expect("there is room");
    }
    letters.finish().expect("there is room");
    server.put("/letters.safetensors", fs::read(place.path("letters.safetensors")).expect("it was written"));
    let letters = ["letters.safetensors", &server.url("/letters.safetensors")].map(|table| run("first_network", &[table]));
    assert!(letters[0].contains("best epoch") && letters[0] == letters[1], "{letters:?}");

    let predicted = ["rows.csv", csv.as_str()].map(|rows| {
        let small = ["--model", "mlp", "--hidden", "8", "--epochs", "3", "--target", "y"];
        run("tabular", &[&[rows, "--out", "model"][..], &small].concat());
        run("predict", &["model", rows, "--out", "predicted.csv"]);
        fs::remove_dir_all(place.path("model")).expect("it was written");
        let predicted = fs::read_to_string(place.path("predicted.csv")).expect("it was written");
        fs::remove_file(place.path("predicted.csv")).expect("it is there");
        predicted
    });
    assert!(predicted[0].lines().count() == 601 && predicted[0] == predicted[1], "the predictions differ");
    let paths =
        ["/rows.csv", "/t.safetensors"].map(|path| server.requests().iter().filter(|request| request.path == path).count());
    assert!(paths[0] >= 3 && paths[1] >= 3, "requests by object: {paths:?}");
}

#[test]
fn programs_read_from_rclone_what_they_read_from_files() {
    let Some(server) = Rclone::start("programs with a store of rclone") else { return };
    let place = Place::new();
    place.write("rows.csv", rows());
    fs::write(server.file("rows.csv"), rows()).expect("there is room for a small file");
    let run = |example: &'static str, args: &[&str], more: &[(&str, &str)]| {
        let mut command = place.command(example, args);
        command.envs(server.settings()).env("XDG_CACHE_HOME", place.path("cache")).envs(more.iter().copied());
        let output = command.output().expect("the example runs");
        let [shown, said] = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        (output.status.success(), shown, said)
    };
    let succeed = |example: &'static str, args: &[&str]| {
        let (is_success, shown, said) = run(example, args, &[]);
        assert!(is_success, "{example} {args:?}: {said}");
        shown
    };
    let small = ["--model", "mlp", "--hidden", "8", "--epochs", "3", "--target", "y"];
    let predicted = [("here", "rows.csv"), ("there", "s3://bucket/rows.csv")].map(|(model, rows)| {
        succeed("tabular", &[&[rows, "--out", model][..], &small].concat());
        let predicted = format!("{model}.csv");
        succeed("predict", &[model, rows, "--out", &predicted]);
        fs::read_to_string(place.path(predicted)).expect("it was written")
    });
    assert!(predicted[0].lines().count() == 601 && predicted[0] == predicted[1], "the predictions differ");

    succeed("import", &["s3://bucket/rows.csv", "s3://bucket/tables/rows", "--shard-rows", "250"]);
    let names = server.names("tables/rows");
    assert!(
        names.len() == 4 && names.contains(&"table.safetensors.index.json".to_owned()),
        "three shards and an index: {names:?}"
    );
    succeed("import", &["rows.csv", "here.safetensors"]);
    let auc = |table: &str| {
        let small = ["--hidden", "8", "--batch", "100", "--epochs", "2", "--json", "results.json"];
        succeed(
            "data_parallel",
            &[&["--train", table, "--test", table, "--stream", "16", "--replicas", "2"][..], &small].concat(),
        );
        place.json("results.json")["test_auc"].as_f64().expect("a number")
    };
    let (here, there) = (auc("here.safetensors"), auc("s3://bucket/tables/rows"));
    assert!(here == there && here > 0.6, "{here} from the file, {there} from the store");

    let wrong = [("AWS_SECRET_ACCESS_KEY", "wrong")];
    for (example, args) in [
        ("predict", &["here", "s3://bucket/rows.csv", "--out", "predicted.csv"][..]),
        ("tabular", &["s3://bucket/rows.csv", "--target", "y"]),
        ("inspect", &["s3://bucket/tables/rows"]),
        ("import", &["rows.csv", "s3://bucket/tables/rows", "--shard-rows", "250"]),
    ] {
        let (is_success, _, said) = run(example, args, &wrong);
        let last = said.lines().last().unwrap_or_default();
        let names_it =
            ["error: s3://bucket/", "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"].iter().all(|word| last.contains(word));
        assert!(!is_success && names_it, "{example}: {said}");
    }
    assert_eq!(server.names("tables/rows"), names, "a refused import changes nothing");
}
