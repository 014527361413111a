#include "cli/cli.h"

int main(int argc, char** argv) { return tocsin::run_cli(argc, argv); }
