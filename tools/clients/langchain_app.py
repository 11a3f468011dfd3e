from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="gpt-4o-mini")
for question in ["Who should lead the team?", "Can she lead the team?"]:
    print(model.invoke(question).content)
