//! TLS and credentials: a user who may not connect is told why, and changes nothing.

use crate::single::Single;
use crate::support::Machine;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Makes a certificate authority, and certificates for the server and a client, in a folder.
pub(crate) fn certificates(folder: &Path) {
    let script = r#"
        set -e
        authority() {
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=$1" \
                -keyout "$1.key" -out "$1.pem"
        }
        certificate() {
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
            printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n' >"$1.ext"
            openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile "$1.ext" -out "$1.pem"
        }
        authority ca; authority other
        certificate server; certificate client
        chmod 600 *.key
    "#;
    let made = Command::new("bash")
        .args(["-c", script])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
}

fn tls(folder: &Path, verify: bool) -> String {
    certificates(folder);
    let path = |name: &str| folder.join(name);
    format!(
        "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: {verify} }}",
        path("server.pem"),
        path("server.key"),
        path("ca.pem")
    )
}

/// Pushes a session, and pulls it on another machine with the same settings.
#[track_caller]
fn works(machines: [&Machine; 2]) {
    let [from, to] = machines;
    from.until_sound(&["doctor", "--cluster", "--create"]);
    from.make("s", 3, 10);
    from.done(&["push", "s", "--json"]);
    assert_eq!(to.done(&["pull", "s", "--json"])[0]["lines"], 4);
    assert_eq!(to.text("s"), from.text("s"));
}

#[track_caller]
fn is_denied(machine: &Machine) {
    let path = machine.make("s", 3, 10);
    let before = fs::read(&path).unwrap();
    assert_eq!(machine.kind(&["push", "s", "--json"]), "logDenied");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_server_whose_certificate_is_not_trusted_gets_nothing() {
    let Some(server) = Single::start(|folder| tls(folder, false)) else {
        return;
    };
    let path = |name: &str| server.folder.path().join(name);
    let trusting = format!("tls = true\nca = {:?}", path("ca.pem"));
    works([
        &server.tls_machine(&trusting),
        &server.tls_machine(&trusting),
    ]);
    // The server requires TLS, also if the address does not say so.
    works([&server.machine(&trusting), &server.tls_machine(&trusting)]);
    is_denied(&server.tls_machine("tls = true"));
    is_denied(&server.machine(""));
    is_denied(&server.tls_machine(&format!("ca = {:?}", path("other.pem"))));
    is_denied(&server.tls_machine(&format!("ca = {:?}", path("missing.pem"))));
    is_denied(&server.tls_machine(&format!("ca = {:?}", path("ca.key"))));
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_demanded() {
    let Some(server) = Single::start(|_| String::new()) else {
        return;
    };
    works([&server.machine(""), &server.machine("")]);
    is_denied(&server.machine("tls = true"));
    is_denied(&server.tls_machine(""));
}

#[test]
fn a_server_that_asks_for_a_certificate_gets_it() {
    let Some(server) = Single::start(|folder| tls(folder, true)) else {
        return;
    };
    let path = |name: &str| server.folder.path().join(name);
    let ca = format!("ca = {:?}", path("ca.pem"));
    let certificate = |name: &str| {
        let (certificate, key) = (format!("{name}.pem"), format!("{name}.key"));
        format!(
            "{ca}\ncertificate = {:?}\nkey = {:?}",
            path(&certificate),
            path(&key)
        )
    };
    let known = certificate("client");
    works([&server.tls_machine(&known), &server.tls_machine(&known)]);
    is_denied(&server.tls_machine(&ca));
    is_denied(&server.tls_machine(&certificate("other")));
    is_denied(&server.tls_machine(&certificate("missing")));
}

/// A JSON Web Token as `nsc` makes it.
fn token(issuer: &KeyPair, subject: &KeyPair, name: &str, nats: &Value) -> String {
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let claims = json!({
        "jti": name, "iat": 1_700_000_000, "iss": issuer.public_key(), "name": name, "sub": subject.public_key(),
        "nats": nats,
    });
    let signed = format!("{}.{}", encode(&header), encode(&claims));
    let signature = issuer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// A file of credentials for a user of an account.
fn credentials(account: &KeyPair, user: &KeyPair) -> String {
    let claims = json!({ "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {} });
    format!(
        "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        token(account, user, "user", &claims),
        user.seed().unwrap()
    )
}

/// A server whose operator trusts one account, as the tool `nsc` sets it up.
fn of_operator(account: &KeyPair) -> String {
    let (operator, system) = (KeyPair::new_operator(), KeyPair::new_account());
    let limits = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
        "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
    });
    let claims = json!({ "type": "account", "version": 2, "limits": limits });
    let no_storage = json!({ "type": "account", "version": 2, "limits": {
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
    } });
    let own = token(
        &operator,
        &operator,
        "operator",
        &json!({ "type": "operator", "version": 2, "system_account": system.public_key() }),
    );
    format!(
        "operator: {own}\nsystem_account: {system}\nresolver: MEMORY\nresolver_preload: {{\n  {account}: {}\n  {system}: {}\n}}",
        token(&operator, account, "team", &claims),
        token(&operator, &system, "system", &no_storage),
        account = account.public_key(),
        system = system.public_key(),
    )
}

#[test]
fn a_file_of_credentials_opens_its_account_and_a_strange_one_none() {
    let (account, other) = (KeyPair::new_account(), KeyPair::new_account());
    let Some(server) = Single::start(|folder| {
        let (alice, eve) = (KeyPair::new_user(), KeyPair::new_user());
        let good = credentials(&account, &alice);
        let path = folder.join("alice.creds");
        fs::write(&path, &good).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(folder.join("eve.creds"), credentials(&other, &eve)).unwrap();
        let seed = eve.seed().unwrap();
        let stolen = good.replace(&alice.seed().unwrap(), &seed);
        fs::write(folder.join("stolen.creds"), stolen).unwrap();
        fs::write(folder.join("text.creds"), "no credentials\n").unwrap();
        of_operator(&account)
    }) else {
        return;
    };
    let with = |name: &str| {
        let path = server.folder.path().join(name);
        server.machine(&format!("credentials = {path:?}"))
    };
    works([&with("alice.creds"), &with("alice.creds")]);
    for name in ["eve.creds", "stolen.creds", "text.creds", "missing.creds"] {
        is_denied(&with(name));
    }
    is_denied(&server.machine(""));
}

/// The command lines of all processes that contain this text.
fn arguments_with(text: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap());
    let arguments = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let arguments = arguments.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "));
    arguments.filter(|all| all.contains(text)).collect()
}

/// A daemon that a command had started once had the password of `--log` in its arguments, which all users of a machine
/// can see.
#[test]
fn a_daemon_that_is_started_has_no_password_in_its_arguments() {
    let users = "authorization { user: alice, password: s3cr3t-word }";
    let Some(server) = Single::start(|_| users.to_owned()) else {
        return;
    };
    let configured = server.machine("");
    let log = format!("nats://alice:s3cr3t-word@127.0.0.1:{}", server.port);
    let runtime = tempfile::tempdir().unwrap();
    let command = |args: &[&str]| {
        let mut command = configured.command(args);
        command
            .env("TREELINED_LOG_SERVERS", &log)
            .env("XDG_RUNTIME_DIR", runtime.path());
        command
    };
    let created = command(&["doctor", "--cluster", "--create"]).output();
    assert!(created.unwrap().status.success());
    let connect = [&["connect", "--start"], &["--log", &*log][..]].concat();
    let mut client = command(&connect)
        .env_remove("TREELINED_LOG_SERVERS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "create_session", "params": { "write": "now", "cwd": "/c" },
    });
    writeln!(client.stdin.as_mut().unwrap(), "{request}").unwrap();
    let output = BufReader::new(client.stdout.as_mut().unwrap());
    let answer = output.lines().map(|line| line.unwrap());
    let answer = answer.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    let answer = answer.into_iter().find(|answer| answer["id"] == 1).unwrap();
    assert_eq!(answer["result"]["durability"], "replicated", "{answer}");
    let place = configured.sessions().display().to_string();
    let daemons: Vec<String> = arguments_with(&place)
        .into_iter()
        .filter(|arguments| arguments.contains("--detached"))
        .collect();
    assert!(!daemons.is_empty());
    for arguments in daemons {
        assert!(!arguments.contains("s3cr3t-word"), "{arguments}");
    }
    // The command notices that the running daemon uses other servers, and shows their address without a password.
    let other = ["connect", "--log", "nats://alice:s3cr3t-word@127.0.0.1:1"];
    let refused = command(&other).output().unwrap();
    let refused = String::from_utf8(refused.stderr).unwrap();
    assert!(
        refused.contains("--log") && !refused.contains("s3cr3t"),
        "{refused}"
    );
    drop(client.stdin.take());
    client.wait().unwrap();
    assert!(command(&["stop"]).status().unwrap().success());
}
