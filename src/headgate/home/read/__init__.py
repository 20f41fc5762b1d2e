"""The read model of a home: what all who look at a job see, with one definition of each figure."""
