/// Starts an import that takes a second or so, and waits until it has begun to write.
#[cfg(unix)]
fn started(place: &Place, shell: &str) -> std::process::Child {
    use std::process::Stdio;

    let rows = "1,0.333333333,-1.25e-3,17\n".repeat(1 << 21);
    place.write("in.csv", &format!("signal,pt,eta,id\n{rows}"));
    let mut command = Command::new("bash");
    command.args(["-c", shell]).env("IMPORT", built("import")).current_dir(place.dir.path());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("there is `bash`");
    while place.left().is_empty() {
        assert!(child.try_wait().expect("the example can be asked").is_none(), "it writes before it ends");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child
}

#[cfg(unix)]
fn send(signal: &str, child: &std::process::Child) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("there is `kill`");
    assert!(sent.success(), "the example still runs");
}

/// Ctrl-C, and what batch systems and closed terminals send.
#[cfg(unix)]
#[test]
fn a_signal_leaves_nothing() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let place = Place::new();
        let child = started(&place, r#"exec "$IMPORT" in.csv out.safetensors --threads 1"#);
        send(signal, &child);
        let output = child.wait_with_output().expect("the example ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{signal}: {stderr}");
        assert_eq!(stderr, "error: interrupted; out.safetensors is as it was\n", "{signal}");
        assert!(place.left().is_empty(), "{signal} leaves {:?}", place.left());
    }
}

/// A script starts background jobs with SIGINT ignored, which stays so: Ctrl-C is for the job in the foreground.
#[cfg(unix)]
#[test]
fn an_import_runs_in_the_background_of_a_script() {
    for shell in [
        r#""$IMPORT" in.csv out.safetensors --threads 1 & wait $!"#,
        r#"trap '' INT; exec "$IMPORT" in.csv out.safetensors --threads 1"#,
    ] {
        let place = Place::new();
        let child = started(&place, shell);
        if shell.starts_with("trap") {
            send("-INT", &child);
        }
        let output = child.wait_with_output().expect("the example ends");
        assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(place.left(), ["out.safetensors"], "{shell}");
    }
}
