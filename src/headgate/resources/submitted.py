"""What `headgate submit` gives to spark-submit: the command line, in a process of Spark's."""

from headgate.cli.main import main

main()
