//! The program; everything is the library's.

fn main() -> std::process::ExitCode {
    treelined::run()
}
