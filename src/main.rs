//! The program; the library has all of its code.

fn main() -> std::process::ExitCode {
    treelined::run()
}
